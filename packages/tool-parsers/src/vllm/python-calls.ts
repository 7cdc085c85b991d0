import { PythonError, type PyValue } from "../../../python-values/src/index.ts";
import type { ParseContext } from "../parse-context.ts";
import { parseFirstStatement, type Expression } from "../shared/python-source/expression.ts";
import { readLiteralArgument } from "../shared/python/literal-argument.ts";
import { readPythonicArgument } from "../shared/python/pythonic-argument.ts";
import { dottedName } from "../shared/python/pythonic-blocks.ts";
import type { VllmCall } from "./vllm-reading.ts";
import { writeJson } from "../shared/json/write-json.ts";

/** The rules for arguments: constants, lists, dictionaries, and JSON's names of constants are allowed. */
export const vllmArguments = {
  names: new Map<string, PyValue>([
    ["true", true],
    ["false", false],
    ["null", null],
  ]),
  allowsTuples: false,
  allowsNegative: false,
} as const;

function readOldArgument(node: Expression): PyValue {
  return readPythonicArgument(node, vllmArguments);
}

/**
 * Reads an argument as vLLM does since 0.33: tuples, sets, signs and formatted strings without placeholders are also
 * allowed.
 */
function readNewArgument(node: Expression): PyValue {
  return readLiteralArgument(node, "constants");
}

/**
 * Reads the calls of a source that must be a list of calls.
 *
 * **Source:** vllm-project/vllm, `vllm/tool_parsers/utils.py` (`handle_single_tool`).
 *
 * @throws PythonError if it is not a list of calls, or if a name or an argument is not plain.
 */
export function readVllmPythonCalls(source: string, context: ParseContext): VllmCall[] {
  return readVllmCallList(parseFirstStatement(source), context);
}

/**
 * Reads the calls of a statement that must be a list of calls.
 *
 * @throws PythonError if it is not a list of calls, or if a name or an argument is not plain.
 */
export function readVllmCallList(
  list: Expression | undefined,
  context: ParseContext,
  restoreKey = (key: string): string => key,
): VllmCall[] {
  const readArgument = context.engineVersion === "0.24" ? readOldArgument : readNewArgument;
  if (list?.type !== "list") throw new PythonError("ValueError", "the calls are not a list");
  return list.items.map((call) => {
    const name = call.type === "call" ? dottedName(call.callee) : undefined;
    if (call.type !== "call" || name === undefined) {
      throw new PythonError("ValueError", "an item is not a call");
    }
    const values = new Map<string, PyValue>(
      call.keywords.map(({ name: key = "null", value }) => [restoreKey(key), readArgument(value)]),
    );
    return { name, argumentsText: writeJson(values) };
  });
}
