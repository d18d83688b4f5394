// Loaded before the conformance suite, which has no option for it: every request carries the token in WAYPOST_TOKEN.
import { Agent, setGlobalDispatcher } from "undici";

const token = `Bearer ${process.env.WAYPOST_TOKEN}`;

const plainFetch = globalThis.fetch;
globalThis.fetch = (address, options = {}) => {
  const headers = new Headers(options.headers);
  headers.set("authorization", token);
  return plainFetch(address, { ...options, headers });
};

// For what goes past fetch: the headers are an object there, or a flat list from fetch, which has the token already.
const withToken = (dispatch) => (options, handler) =>
  Array.isArray(options.headers)
    ? dispatch(options, handler)
    : dispatch({ ...options, headers: { ...options.headers, authorization: token } }, handler);
setGlobalDispatcher(new Agent().compose(withToken));
