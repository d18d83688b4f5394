// Sanitizes Markdown from other authors. Loaded only where a text is shown.

import DOMPurify from "dompurify";
import { marked } from "marked";

/** The allowed elements: nothing that loads, runs or submits anything. */
const TAGS = [
  "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "input", "li", "ol", "p", "pre",
  "s", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul",
];
const ATTRIBUTES = ["align", "checked", "disabled", "href", "start", "title", "type"];

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A") {
    node.setAttribute("rel", "noopener noreferrer nofollow");
    node.setAttribute("target", "_blank");
  }
  // The only inputs that Markdown produces are checkboxes.
  if (node.tagName === "INPUT") {
    if (node.getAttribute("type") !== "checkbox") node.remove();
    else {
      node.setAttribute("disabled", "");
      node.setAttribute("aria-label", node.hasAttribute("checked") ? "done" : "not done");
    }
  }
});

// Tags in the text are shown as written.
marked.use({ renderer: { html: ({ text }) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;") } });

/** Renders the text as nodes for the page. */
export function nodes(text: string): DocumentFragment {
  const html = marked.parse(text, { async: false, gfm: true });
  return DOMPurify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|#)/i,
    // These attributes hold no addresses, so the address pattern does not apply.
    ADD_URI_SAFE_ATTR: ["align", "checked", "disabled", "start", "type"],
    RETURN_DOM_FRAGMENT: true,
  });
}
