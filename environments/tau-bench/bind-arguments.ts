import { PythonError } from "../../packages/python-values/src/python-error.ts";
import { reprString } from "../../packages/python-values/src/text/repr.ts";
import type { PyDict, PyValue } from "../../packages/python-values/src/value.ts";
import type { TauTool } from "./tau-tool.ts";

/** The tool of a call, and its domain's name as the original's modules spell it. */
interface BoundTool {
  readonly domain: string;
  readonly tool: Pick<TauTool<never>, "name" | "className" | "parameters">;
}

/**
 * Binds keyword arguments to a tool's parameters as Python does in `Class.invoke(data=data, **arguments)`. Returns
 * the values in the order of the parameters.
 *
 * **Source:** CPython 3.11, `Python/ceval.c` (`initialize_locals`, `format_missing`).
 *
 * @throws PythonError `TypeError`: a second `data` first, then the first unexpected argument, then missing ones.
 */
export function bindArguments({ domain, tool }: BoundTool, given: PyDict): PyValue[] {
  const signature = `${tool.className}.invoke()`;
  if (given.has("data")) {
    const path = `tau_bench.envs.${domain}.tools.${tool.name}.${signature}`;
    throw new PythonError("TypeError", `${path} got multiple values for keyword argument 'data'`);
  }
  for (const name of given.keys()) {
    if (!tool.parameters.includes(name)) {
      throw new PythonError(
        "TypeError",
        `${signature} got an unexpected keyword argument '${name}'`,
      );
    }
  }
  const missing = tool.parameters.filter((name) => !given.has(name));
  if (missing.length > 0) {
    const plural = missing.length === 1 ? "argument" : "arguments";
    throw new PythonError(
      "TypeError",
      `${signature} missing ${missing.length} required positional ${plural}: ${listNames(missing)}`,
    );
  }
  return tool.parameters.map((name) => given.get(name) as PyValue);
}

/** Returns `'a'`, `'a' and 'b'`, or `'a', 'b', and 'c'`. */
function listNames(names: readonly string[]): string {
  const quoted = names.map(reprString);
  if (quoted.length <= 2) return quoted.join(" and ");
  return `${quoted.slice(0, -1).join(", ")}, and ${quoted.at(-1)}`;
}
