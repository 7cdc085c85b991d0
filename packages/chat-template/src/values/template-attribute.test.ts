import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compileMemberAccess, getAttribute } from "./template-attribute.ts";
import { dictMethods, unsafeDictMethods } from "./template-container-methods.ts";
import type { Frame } from "../evaluate/frame.ts";
import { BuiltinFunction } from "../evaluate/template-function.ts";
import { Namespace } from "./template-namespace.ts";
import type { TemplateValue } from "./template-value.ts";
import { isDict, Markup, Tuple, Undefined } from "./template-value.ts";

const names = fc.constantFrom(
  "role",
  "content",
  "x",
  "",
  "items",
  "get",
  "pop",
  "upper",
  "append",
  "count",
  "real",
  "__class__",
  "__init__",
  "__x__",
  "__",
  "_",
  "translate",
  "call",
  "call_x",
);

const plain = fc.oneof(
  fc.constantFrom<TemplateValue>(null, true, 1n, 0.5, "", "text", new Markup("m")),
  fc.constantFrom<TemplateValue>([], [1n], new Tuple([]), new Undefined({ name: "missing" })),
);

const namespaces = fc.dictionary(fc.constantFrom("role", "x", "items"), plain).map((members) => {
  const namespace = new Namespace();
  for (const [name, value] of Object.entries(members)) namespace.set(name, value);
  return namespace;
});

const dicts = fc
  .array(fc.tuple(names, plain))
  .map((members) => new Map<TemplateValue, TemplateValue>(members));

const values = fc.oneof(plain, dicts, namespaces, fc.constant(new BuiltinFunction(() => null)));

/** The comparable result of an access: its value, or its error message. */
function outcomeOf(access: () => TemplateValue): unknown {
  try {
    const value = access();
    // Each access makes a new bound method.
    return value instanceof BuiltinFunction ? "a method" : value;
  } catch (error) {
    return String(error);
  }
}

describe("compileMemberAccess()", () => {
  test("returns a dictionary's member unless an attribute of dictionaries hides it", () => {
    fc.assert(
      fc.property(values, names, (value, name) => {
        const isHidden = dictMethods.has(name) || unsafeDictMethods.has(name);
        const member = isDict(value) && !isHidden ? value.get(name) : undefined;
        expect(outcomeOf(() => compileMemberAccess(() => value, name)({} as Frame))).toEqual(
          outcomeOf(() => member ?? (member === null ? null : getAttribute(value, name))),
        );
      }),
      { numRuns: 2000 },
    );
  });
});
