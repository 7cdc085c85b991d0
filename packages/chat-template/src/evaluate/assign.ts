import type { JinjaTarget } from "../syntax/ast.ts";
import type { Frame } from "./frame.ts";
import { frameAt } from "./frame.ts";
import type { JinjaScope } from "./scope.ts";
import { typeError, valueError } from "../template-error.ts";
import { iterableOf } from "../values/template-iterate.ts";
import { Namespace } from "../values/template-namespace.ts";
import type { TemplateValue } from "../values/template-value.ts";
import { runtimeError, typeName } from "../values/template-value.ts";

/** Assigns a value to a target. */
export type Assign = (frame: Frame, value: TemplateValue) => void;

/** Compiles a target to a function that assigns to it. */
export function compileAssign(target: JinjaTarget, scope: JinjaScope): Assign {
  switch (target.type) {
    case "name": {
      const { depth, slot } = scope.find(target.name) ?? { depth: 0, slot: 0 };
      if (depth === 0) {
        return (frame, value) => {
          frame.slots[slot] = value;
        };
      }
      return (frame, value) => {
        frameAt(frame, depth).slots[slot] = value;
      };
    }
    case "namespace":
      return compileNamespaceAssign(target, scope);
    case "tuple": {
      const parts = target.items.map((item) => compileAssign(item, scope));
      return (frame, value) => {
        const items = unpack(value, parts.length);
        parts.forEach((assign, index) => assign(frame, items[index] as TemplateValue));
      };
    }
  }
}

function compileNamespaceAssign(
  { name, attribute }: Extract<JinjaTarget, { type: "namespace" }>,
  scope: JinjaScope,
): Assign {
  const place = scope.find(name);
  return (frame, value) => {
    const namespace = place && frameAt(frame, place.depth).slots[place.slot];
    if (!(namespace instanceof Namespace)) {
      throw runtimeError("cannot assign attribute on non-namespace object");
    }
    namespace.set(attribute, value);
  };
}

function unpack(value: TemplateValue, count: number): readonly TemplateValue[] {
  const iterable = iterableOf(value);
  if (iterable === undefined)
    throw typeError(`cannot unpack non-iterable ${typeName(value)} object`);
  const items = Array.from(iterable);
  if (items.length < count) {
    throw valueError(`not enough values to unpack (expected ${count}, got ${items.length})`);
  }
  if (items.length > count) throw valueError(`too many values to unpack (expected ${count})`);
  return items;
}
