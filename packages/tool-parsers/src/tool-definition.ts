import { isPyDict, isPyList, type PyDict, type PyValue } from "../../python-values/src/index.ts";
import { UsageError } from "../../python-values/src/support/index.ts";

/** A tool as the model sees it. */
export interface ToolDefinition {
  readonly name: string;
  /**
   * The complete definition in OpenAI's shape (`{type: "function", function: {name, description, parameters}}`). It
   * keeps the key order and the number format of its source, because templates print it.
   */
  readonly openai: PyDict;
}

/**
 * Reads a tool definition in OpenAI's shape.
 *
 * @throws UsageError if `function.name` is missing. `place` names the definition in the message.
 */
export function toolFromOpenAi(value: PyValue, place: string): ToolDefinition {
  const name = isPyDict(value) ? shownToolName(value) : undefined;
  if (!isPyDict(value) || name === undefined) {
    throw new UsageError(
      `Cannot read ${place}: expected {"type": "function", "function": {"name": …}}`,
    );
  }
  return { name, openai: value };
}

/**
 * Reads a list of tool definitions in OpenAI's shape.
 *
 * @throws UsageError if the value is not a list, or an entry has no `function.name`.
 */
export function toolsFromOpenAi(value: PyValue, place: string): readonly ToolDefinition[] {
  if (!isPyList(value)) throw new UsageError(`Cannot read ${place}: expected a list of tools`);
  return value.map((tool, index) => toolFromOpenAi(tool, `${place}[${index}]`));
}

/** Returns the name in a definition of OpenAI's shape, or `undefined` if it has none. */
export function shownToolName(openai: PyDict): string | undefined {
  const body = openai.get("function");
  const name = isPyDict(body) ? body.get("name") : undefined;
  return typeof name === "string" ? name : undefined;
}

/** Returns the JSON Schema of the tool's parameters, or `undefined` if it declares none. */
export function toolParameters(tool: ToolDefinition): PyValue | undefined {
  const body = tool.openai.get("function");
  return isPyDict(body) ? body.get("parameters") : undefined;
}
