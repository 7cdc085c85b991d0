import {
  isPyDict,
  type PyDict,
  PythonValueError,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { readLiteralArgument } from "../../shared/python/literal-argument.ts";
import type { Expression } from "../../shared/python-source/expression.ts";
import { dottedName } from "../../shared/python/pythonic-blocks.ts";
import type { CompatCall } from "../../tool-call-parser.ts";
import { forwardsUnknown } from "../../sglang/base-json.ts";
import { recoverStatement, salvageCalls } from "./lfm2-recovery.ts";
import { restoreReserved } from "./lfm2-rewrites.ts";
import { writeJson } from "../../shared/json/write-json.ts";
import { isFiniteJson } from "../../shared/json/is-finite-json.ts";

type Call = Extract<Expression, { type: "call" }>;

/**
 * Reads the calls of an LFM2 block as SGLang does since 0.5.23. Text that is not Python is
 * rewritten or cut into calls, and an unreadable call is dropped alone.
 *
 * **Source:** sgl-project/sglang 0.5.23, `python/sglang/srt/function_call/lfm2_detector.py`.
 *
 * @throws PythonError if the engine cannot read the block at all.
 */
export function readLfm2Calls(content: string, context: ParseContext): CompatCall[] {
  const whole = recoverStatement(content);
  const found =
    whole === undefined
      ? salvageCalls(content)
      : callsOf(whole.statement).map((call) => ({ call, isRenamed: whole.isRenamed }));
  return found.flatMap(({ call, isRenamed }, toolIndex) => {
    const read = readCall(call, isRenamed, context);
    return read === undefined ? [] : [{ ...read, toolIndex }];
  });
}

function callsOf(statement: Expression | undefined): readonly Call[] {
  if (statement === undefined) return [];
  const items = statement.type === "list" ? statement.items : [statement];
  const calls = items.filter((item): item is Call => item.type === "call");
  return calls.length === items.length ? calls : [];
}

function readCall(
  call: Call,
  isRenamed: boolean,
  context: ParseContext,
): Pick<CompatCall, "name" | "argumentsText"> | undefined {
  const name = dottedName(call.callee);
  if (name === undefined) return undefined;
  if (!context.toolPositions.has(name) && !forwardsUnknown(context)) return undefined;
  if (call.hasPositional) return undefined;
  const values = catchPython(() => readArguments(call), "ValueError");
  if (values === undefined) return undefined;
  const restored = isRenamed
    ? new Map([...values].map(([key, value]) => [restoreReserved(key), value] as const))
    : values;
  if (!isFiniteJson(restored)) return undefined;
  return { name, argumentsText: writeJson(restored) };
}

/**
 * Reads the arguments of a call.
 *
 * @throws PythonError `ValueError` if an argument is not a literal.
 */
function readArguments({ keywords }: Call): PyDict {
  const values = new Map<string, PyValue>();
  for (const { name, value } of keywords) {
    const read = readLiteralArgument(value, "any");
    if (name !== undefined) {
      values.set(name, read);
    } else if (isPyDict(read)) {
      for (const [key, member] of read) values.set(key, member);
    } else {
      throw new PythonValueError("only dictionaries can be unpacked");
    }
  }
  return values;
}
