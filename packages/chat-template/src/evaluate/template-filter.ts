import { callMethod } from "../values/template-attribute.ts";
import type { BoundArguments } from "./template-function.ts";
import { bindArguments, signatureOf } from "./template-function.ts";
import { strOf } from "../values/template-text.ts";
import type { CallArguments, TemplateValue } from "../values/template-value.ts";
import { Markup } from "../values/template-value.ts";

/** A filter: takes the value before the bar, and the arguments after its name. */
export type Filter = (value: TemplateValue, args: CallArguments) => TemplateValue;

/** A filter with its name, as the tables hold it. */
export type NamedFilter = readonly [name: string, filter: Filter];

/** Makes a filter with arguments bound by a signature; see `signatureOf()`. */
export function defineFilter(
  signatureText: string,
  run: (value: TemplateValue, ...args: BoundArguments) => TemplateValue,
): NamedFilter {
  const signature = signatureOf(signatureText);
  return [
    signature.name,
    (value, args) => {
      const given = bindArguments(signature, args);
      return given.length === 0 ? run(value) : run(value, ...given);
    },
  ];
}

/** Makes a filter that applies a method of `str` to the value as a string. */
export function defineMethodFilter(signatureText: string, method: string): NamedFilter {
  return defineFilter(signatureText, (value, ...args) => {
    const positional = args.filter((argument) => argument !== undefined);
    return callMethod(softText(value), method, { positional, named: new Map() });
  });
}

/** The value as a string; a safe string stays marked as safe. */
export function softText(value: TemplateValue): string | Markup {
  return value instanceof Markup ? value : strOf(value);
}
