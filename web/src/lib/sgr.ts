// Colours of program output: the safe subset of ANSI escape sequences. Weights, underlines and eight hues stay; everything
// else that begins with an escape character is removed. crates/waypost-text/src/sgr.rs follows the same rules, and both
// pass sgrCases.json.

export interface Span {
  text: string;
  /** Class names: `bold`, `dim`, `italic`, `underline`, `strike`, `inverse`, `fg-red`, `bg-blue`. */
  style: string;
}

const HUES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;
type Hue = (typeof HUES)[number] | "gray";

interface Style {
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
  strike: boolean;
  inverse: boolean;
  fg: Hue | null;
  bg: Hue | null;
}

const PLAIN: Style = { bold: false, dim: false, italic: false, underline: false, strike: false, inverse: false, fg: null, bg: null };
const MARKS = ["bold", "dim", "italic", "underline", "strike", "inverse"] as const;

function classes(style: Style): string {
  const names: string[] = MARKS.filter((mark) => style[mark]);
  if (style.fg) names.push(`fg-${style.fg}`);
  if (style.bg) names.push(`bg-${style.bg}`);
  return names.join(" ");
}

/** CSI sequences, strings (OSC, DCS, SOS, PM, APC) up to their end, and two-character sequences. */
// eslint-disable-next-line no-control-regex
const ESCAPE = /\u001b\[([0-?]*)[ -/]*([@-~])|\u009b([0-?]*)[ -/]*([@-~])|(?:\u001b[\]PX^_]|[\u0090\u0098\u009d-\u009f])[^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c|$)|\u001b[ -/]*[0-~]|\u001b/g;

/** Splits one line into spans, and carries the style to the next. */
export class SgrReader {
  #style: Style = { ...PLAIN };

  line(text: string): Span[] {
    const spans: Span[] = [];
    const add = (part: string): void => {
      if (part === "") return;
      const style = classes(this.#style);
      const last = spans.at(-1);
      if (last && last.style === style) last.text += part;
      else spans.push({ text: part, style });
    };
    let from = 0;
    for (const found of text.matchAll(ESCAPE)) {
      add(text.slice(from, found.index));
      from = found.index + found[0].length;
      if ((found[2] ?? found[4]) === "m") this.#apply(found[1] ?? found[3] ?? "");
    }
    add(text.slice(from));
    return spans;
  }

  #apply(parameters: string): void {
    if (/[<-?]/.test(parameters)) return;
    const codes = parameters.split(/[;:]/).map((code) => (code === "" ? 0 : Number(code)));
    const style = this.#style;
    for (let at = 0; at < codes.length; at++) {
      const code = codes[at] ?? 0;
      if (code === 0) Object.assign(style, PLAIN);
      else if (code === 1) style.bold = true;
      else if (code === 2) style.dim = true;
      else if (code === 3) style.italic = true;
      else if (code === 4) style.underline = true;
      else if (code === 7) style.inverse = true;
      else if (code === 9) style.strike = true;
      else if (code === 22) style.bold = style.dim = false;
      else if (code === 23) style.italic = false;
      else if (code === 24) style.underline = false;
      else if (code === 27) style.inverse = false;
      else if (code === 29) style.strike = false;
      else if (code >= 30 && code <= 37) style.fg = HUES[code - 30] ?? null;
      else if (code === 39) style.fg = null;
      else if (code >= 40 && code <= 47) style.bg = HUES[code - 40] ?? null;
      else if (code === 49) style.bg = null;
      else if (code >= 90 && code <= 97) style.fg = bright(code - 90);
      else if (code >= 100 && code <= 107) style.bg = bright(code - 100);
      else if (code === 38 || code === 48) {
        const kind = codes[at + 1];
        const hue = kind === 5 ? palette(codes[at + 2] ?? 0) : kind === 2 ? nearest(codes[at + 2] ?? 0, codes[at + 3] ?? 0, codes[at + 4] ?? 0) : null;
        if (hue === null) return;
        if (code === 38) style.fg = hue;
        else style.bg = hue;
        at += kind === 5 ? 2 : 4;
      }
    }
  }
}

const bright = (index: number): Hue => (index === 0 ? "gray" : (HUES[index] ?? "white"));

function palette(index: number): Hue {
  if (index < 8) return HUES[index] ?? "black";
  if (index < 16) return bright(index - 8);
  if (index < 232) {
    const level = (step: number): number => (step === 0 ? 0 : 55 + 40 * step);
    const cube = index - 16;
    return nearest(level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6));
  }
  const grey = 8 + 10 * (Math.min(index, 255) - 232);
  return nearest(grey, grey, grey);
}

/** Returns the hue next to a colour. A free choice of colours could not be read on every background. */
function nearest(red: number, green: number, blue: number): Hue {
  const [most, least] = [Math.max(red, green, blue), Math.min(red, green, blue)];
  if (most - least < 40) return most < 64 ? "black" : most < 176 ? "gray" : "white";
  const middle = (most + least) / 2;
  return HUES[(red > middle ? 1 : 0) + (green > middle ? 2 : 0) + (blue > middle ? 4 : 0)] ?? "white";
}
