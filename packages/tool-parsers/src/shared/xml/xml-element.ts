import { ExpatReader, type XmlHandlers } from "./expat-reader.ts";

/** An XML element, with the details that its readers need. */
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

/**
 * Reads a document that is one XML element, as Python's `ElementTree.fromstring()` does. Namespaces
 * are not supported: a name with a prefix counts as malformed.
 *
 * @returns `undefined` if the text is not well-formed.
 */
export function parseXmlElement(source: string): XmlElement | undefined {
  const builder = new ElementBuilder();
  const reader = new ExpatReader(builder);
  if (!reader.read(source) || !reader.isComplete || builder.hasNamespaces) return undefined;
  return builder.root;
}

class ElementBuilder implements XmlHandlers {
  root: XmlElement | undefined;
  hasNamespaces = false;
  readonly #open: OpenElement[] = [];

  start(tag: string, attributes: ReadonlyMap<string, string>): void {
    const names = [tag, ...attributes.keys()];
    this.hasNamespaces ||= names.some((name) => name === "xmlns" || name.includes(":"));
    const element = { tag, attributes, text: "", children: [] };
    this.#open.at(-1)?.children.push(element);
    this.#open.push(element);
    this.root ??= element;
  }

  end(): void {
    this.#open.pop();
  }

  text(data: string): void {
    const parent = this.#open.at(-1);
    if (parent?.children.length === 0) parent.text += data;
  }
}
