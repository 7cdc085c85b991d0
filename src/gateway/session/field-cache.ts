import type { Json } from "../dialects/read-body.ts";
import { rememberTools } from "./remember-values.ts";
import { TextCache } from "./text-cache.ts";

/**
 * The fields that stand around a body's conversation, by their text. An agent's requests have the same
 * there, its tools above all, and so have the requests of other sessions of that agent.
 */
export class FieldCache {
  readonly #before = new TextCache<Json>();
  readonly #behind = new TextCache<Json | null>();

  /**
   * The fields before a list, and the list, which is empty.
   *
   * @param text - Up to and with the list's opening bracket.
   * @throws SyntaxError where the text is no JSON.
   */
  before(text: string): Json {
    return this.#before.find(text, () => readFields(`${text}]}`));
  }

  /**
   * The fields behind a list.
   *
   * @param text - From behind the list's closing bracket to the end.
   * @returns nothing where the list's name is among them: then the list is not what counts.
   * @throws SyntaxError where the text is no JSON.
   */
  behind(text: string, name: string): Json | undefined {
    const opening = `{${JSON.stringify(name)}:`;
    const found = this.#behind.find(`${opening}${text}`, () => {
      const { [name]: first, ...fields } = readFields(`${opening}true${text}`);
      const { [name]: second } = JSON.parse(`${opening}false${text}`) as Json;
      // A field of that name would be the same both times.
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
