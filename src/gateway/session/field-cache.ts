import type { Json } from "../dialects/read-body.ts";
import { rememberTools } from "./remember-values.ts";
import { TextCache } from "./text-cache.ts";

/**
 * Caches the fields around a body's conversation by their text. Most requests of one agent share
 * them, in particular the tools.
 */
export class FieldCache {
  readonly #before = new TextCache<Json>();
  readonly #after = new TextCache<Json | null>();

  /**
   * Reads the fields before a list. The list itself is empty in the result.
   *
   * @param text - The body's text up to and including the list's opening bracket.
   * @throws SyntaxError if the text is not valid JSON.
   */
  before(text: string): Json {
    return this.#before.find(text, () => readFields(`${text}]}`));
  }

  /**
   * Reads the fields after a list.
   *
   * @param text - The body's text after the list's closing bracket.
   * @returns `undefined` if a later field has the list's name, because that field would count
   *   instead.
   * @throws SyntaxError if the text is not valid JSON.
   */
  after(text: string, name: string): Json | undefined {
    const opening = `{${JSON.stringify(name)}:`;
    const found = this.#after.find(`${opening}${text}`, () => {
      const { [name]: first, ...fields } = readFields(`${opening}true${text}`);
      const { [name]: second } = JSON.parse(`${opening}false${text}`) as Json;
      // A later field of that name would give the same value both times.
      return first === true && second === false ? fields : null;
    });
    return found ?? undefined;
  }
}

function readFields(text: string): Json {
  const fields = JSON.parse(text) as Json;
  rememberTools(fields, text);
  return fields;
}
