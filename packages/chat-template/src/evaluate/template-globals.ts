import { TemplateError, typeError } from "../template-error.ts";
import { requireInteger } from "./template-argument.ts";
import { callMethod } from "../values/template-attribute.ts";
import { makeDict } from "../values/template-container-methods.ts";
import { builtin, BuiltinFunction } from "./template-function.ts";
import { makeNamespace } from "../values/template-namespace.ts";
import { Range } from "../values/template-range.ts";
import { strOf } from "../values/template-text.ts";
import { formatTime } from "../values/template-time.ts";
import type { TemplateObject, TemplateValue } from "../values/template-value.ts";

const makeRange = new BuiltinFunction(({ positional }) => {
  const [first, second, step] = positional.map(requireInteger);
  if (first === undefined || positional.length > 3) {
    throw typeError(`range expected 1 to 3 arguments, got ${positional.length}`);
  }
  return second === undefined ? new Range(0n, first, 1n) : new Range(first, second, step ?? 1n);
}, "type");

const raiseException = builtin("raise_exception message", (message) => {
  throw new TemplateError("TemplateError", strOf(message ?? null));
});

/** Cycles through its items, one a call of `next()`. */
const makeCycler = new BuiltinFunction(({ positional }) => {
  if (positional.length === 0) throw typeError("at least one item has to be provided");
  let index = 0;
  const current = () => positional[index % positional.length] as TemplateValue;
  const methods = new Map<string, BuiltinFunction>([
    [
      "next",
      builtin("next", () => {
        const item = current();
        index += 1;
        return item;
      }),
    ],
    [
      "reset",
      builtin("reset", () => {
        index = 0;
        return null;
      }),
    ],
  ]);
  const cycler: TemplateObject = {
    pythonType: "Cycler",
    attribute: (name) => (name === "current" ? current() : methods.get(name)),
  };
  return cycler;
}, "type");

/** Returns an empty text at the first call and the separator at all later ones. */
const makeJoiner = builtin("joiner sep?", (separator = ", ") => {
  let used = false;
  return builtin("joiner", () => {
    const text = used ? separator : "";
    used = true;
    return text;
  });
});

const dictType: TemplateObject = {
  pythonType: "type",
  call: ({ positional, named }) => makeDict(positional[0], named),
  attribute: (name) =>
    name === "fromkeys"
      ? builtin("fromkeys keys value?", (keys = [], value = null) =>
          callMethod(new Map(), "fromkeys", { positional: [keys, value], named: new Map() }),
        )
      : undefined,
};

/** The variable `self`. Chat templates have no blocks that it could return. */
export const templateReference: TemplateObject = {
  pythonType: "TemplateReference",
  repr: () => "<TemplateReference None>",
};

/**
 * The global functions of every chat template, except `strftime_now`.
 *
 * **Source:** the Jinja documentation, "List of Global Functions"; huggingface/transformers,
 * `src/transformers/utils/chat_template_utils.py`.
 */
export const templateGlobals: ReadonlyMap<string, TemplateValue> = new Map<string, TemplateValue>([
  ["cycler", makeCycler],
  ["dict", dictType],
  ["joiner", makeJoiner],
  ["namespace", makeNamespace],
  ["raise_exception", raiseException],
  ["range", makeRange],
]);

/** The global `strftime_now(format)` for a given time. */
export function strftimeAt(now: Date): TemplateValue {
  return builtin("strftime_now format", (format = "") => formatTime(now, strOf(format)));
}
