import { TemplateError } from "../template-error.ts";
import { makeDict } from "./template-container-methods.ts";
import { BuiltinFunction } from "../evaluate/template-function.ts";
import { reprOf } from "./template-text.ts";
import type { TemplateObject, TemplateValue } from "./template-value.ts";
import { textOf } from "./template-value.ts";

/** The result of `namespace(…)`: the only value that a template can change. */
export class Namespace implements TemplateObject {
  readonly pythonType = "Namespace";
  readonly qualifiedType = "jinja2.utils.Namespace";
  readonly #members = new Map<string, TemplateValue>();

  attribute(name: string): TemplateValue | undefined {
    return this.#members.get(name);
  }

  /**
   * Sets a member.
   *
   * @throws TemplateError `SecurityError` for a name that begins with an underscore.
   */
  set(name: string, value: TemplateValue): void {
    if (name.startsWith("_")) {
      throw new TemplateError(
        "SecurityError",
        "Chat templates cannot store underscore-prefixed attributes on a namespace, " +
          `but got ${reprOf(name)}. Please rename the attribute.`,
      );
    }
    this.#members.set(name, value);
  }

  repr(): string {
    return `<Namespace ${reprOf(this.#members)}>`;
  }
}

/** The global `namespace(…)`. */
export const makeNamespace = new BuiltinFunction(({ positional, named }) => {
  const namespace = new Namespace();
  const members = positional[0] === undefined ? named : makeDict(positional[0], named);
  members.forEach((value, key) => namespace.set(textOf(key) ?? "", value));
  return namespace;
}, "type");
