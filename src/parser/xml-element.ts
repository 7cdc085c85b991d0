/** An XML element, as far as its readers need it. */
export interface XmlElement {
  readonly tag: string;
  readonly attributes: ReadonlyMap<string, string>;
  /** The text before the first child. */
  readonly text: string;
  readonly children: readonly XmlElement[];
}

/** An element under construction. */
interface OpenElement {
  readonly tag: string;
  readonly attributes: ReadonlyMap<string, string>;
  text: string;
  readonly children: XmlElement[];
}

const nameSource = String.raw`[A-Z_a-z\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u02FF\u0370-\u037D\u037F-\u1FFF\u200C\u200D\u2070-\u218F\u2C00-\u2FEF\u3001-\uD7FF\uF900-\uFDCF\uFDF0-\uFFFD][-.0-9A-Z_a-z\u00B7\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u037D\u037F-\u1FFF\u200C\u200D\u203F\u2040\u2070-\u218F\u2C00-\u2FEF\u3001-\uD7FF\uF900-\uFDCF\uFDF0-\uFFFD]*`;
const openTag = new RegExp(String.raw`<(${nameSource})`, "y");
const closeTag = new RegExp(String.raw`</(${nameSource})[ \t\n]*>`, "y");
const attribute = new RegExp(
  String.raw`[ \t\n]+(${nameSource})[ \t\n]*=[ \t\n]*(?:"([^"<]*)"|'([^'<]*)')`,
  "y",
);
const tagEnd = /[ \t\n]*(\/?)>/y;
const comment = /<!--(?:(?!--)[^])*-->/y;
const instruction = new RegExp(
  String.raw`<\?(?!xml[ \t\n?])${nameSource}(?:[ \t\n](?:(?!\?>)[^])*)?\?>`,
  "iy",
);
const section = /<!\[CDATA\[((?:(?!\]\]>)[^])*)\]\]>/y;
const textRun = /[^<]+/y;

/**
 * Reads a document that is one XML element. Namespaces are not supported: a name with a prefix counts
 * as malformed.
 *
 * @returns `undefined` where the text is not well-formed.
 */
export function parseXmlElement(source: string): XmlElement | undefined {
  const text = source.replace(/\r\n?/g, "\n");
  // eslint-disable-next-line no-control-regex
  if (/[\0-\x08\x0B\x0C\x0E-\x1F\uFFFE\uFFFF]|\p{Surrogate}/u.test(text)) return undefined;
  return new XmlReader(text).read();
}

class XmlReader {
  readonly #text: string;
  #index = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): XmlElement | undefined {
    const stack: OpenElement[] = [];
    for (;;) {
      const opened = this.#readOpenTag();
      if (opened === "malformed") return undefined;
      let closed: OpenElement | undefined;
      if (opened !== undefined) {
        if (opened.isEmpty) closed = opened.element;
        else stack.push(opened.element);
      } else {
        const close = this.#match(closeTag);
        if (close !== undefined) {
          closed = stack.pop();
          if (closed?.tag !== close[1]) return undefined;
        } else if (!this.#readContent(stack.at(-1))) {
          return undefined;
        }
      }
      if (closed === undefined) continue;
      const parent = stack.at(-1);
      if (parent !== undefined) parent.children.push(closed);
      else return this.#isAtEnd() ? closed : undefined;
    }
  }

  #match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#index;
    const match = pattern.exec(this.#text) ?? undefined;
    if (match !== undefined) this.#index = pattern.lastIndex;
    return match;
  }

  #isAtEnd(): boolean {
    return /^[ \t\n]*$/.test(this.#text.slice(this.#index));
  }

  #readOpenTag(): { element: OpenElement; isEmpty: boolean } | "malformed" | undefined {
    const open = this.#match(openTag);
    if (open === undefined) return undefined;
    const attributes = new Map<string, string>();
    for (let match = this.#match(attribute); match !== undefined; match = this.#match(attribute)) {
      const [, name = "", double, single] = match;
      const value = resolveReferences((double ?? single ?? "").replace(/[\t\n]/g, " "));
      if (value === undefined || attributes.has(name) || name === "xmlns") return "malformed";
      attributes.set(name, value);
    }
    const end = this.#match(tagEnd);
    if (end === undefined) return "malformed";
    const element = { tag: open[1] ?? "", attributes, text: "", children: [] };
    return { element, isEmpty: end[1] === "/" };
  }

  /** Reads text, a comment, an instruction or a CDATA section; false where there is none. */
  #readContent(parent: OpenElement | undefined): boolean {
    if (parent === undefined) return false;
    if (this.#match(comment) !== undefined || this.#match(instruction) !== undefined) return true;
    const cdata = this.#match(section);
    const run = cdata === undefined ? this.#match(textRun) : undefined;
    if (run?.[0].includes("]]>") === true) return false;
    const value = cdata?.[1] ?? (run === undefined ? undefined : resolveReferences(run[0]));
    if (value === undefined) return false;
    if (parent.children.length === 0) parent.text += value;
    return true;
  }
}

const namedReferences: Readonly<Record<string, string>> = {
  lt: "<",
  gt: ">",
  amp: "&",
  quot: '"',
  apos: "'",
};

/** The text with its references resolved; `undefined` where one is unknown or an `&` stands alone. */
function resolveReferences(text: string): string | undefined {
  let isValid = true;
  const resolved = text.replace(
    /&(?:#([0-9]+);|#x([0-9a-fA-F]+);|([A-Za-z]+);)?/g,
    (_: string, decimal?: string, hex?: string, name?: string) => {
      const value =
        name === undefined
          ? characterOf(Number.parseInt(decimal ?? hex ?? "", decimal === undefined ? 16 : 10))
          : namedReferences[name];
      isValid &&= value !== undefined;
      return value ?? "";
    },
  );
  return isValid ? resolved : undefined;
}

function characterOf(codePoint: number): string | undefined {
  const isAllowed =
    codePoint === 0x9 ||
    codePoint === 0xa ||
    codePoint === 0xd ||
    (codePoint >= 0x20 && codePoint <= 0xd7ff) ||
    (codePoint >= 0xe000 && codePoint <= 0xfffd) ||
    (codePoint >= 0x10000 && codePoint <= 0x10ffff);
  return isAllowed ? String.fromCodePoint(codePoint) : undefined;
}
