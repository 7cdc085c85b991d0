import { TemplateError } from "../template-error.ts";
import { reprOf } from "./template-text.ts";
import type { TemplateValue, Undefined } from "./template-value.ts";
import { Markup, objectOf, typeName } from "./template-value.ts";

/** The error that using an undefined value raises. */
export function undefinedError({ origin }: Undefined): TemplateError {
  return new TemplateError(origin.kind ?? "UndefinedError", describeOrigin(origin));
}

function describeOrigin({ hint, object, name }: Undefined["origin"]): string {
  if (hint !== undefined) return hint;
  const named = name ?? null;
  if (object === undefined) return `${reprOf(named)} is undefined`;
  const owner = describeType(object);
  return typeof named === "string"
    ? `${reprOf(owner)} has no attribute ${reprOf(named)}`
    : `${owner} has no element ${reprOf(named)}`;
}

function describeType(value: TemplateValue): string {
  if (value === null) return "None";
  if (value instanceof Markup) return "markupsafe.Markup object";
  return `${objectOf(value)?.qualifiedType ?? typeName(value)} object`;
}
