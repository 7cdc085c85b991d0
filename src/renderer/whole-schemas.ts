import { isPyDict, type PyValue } from "../../packages/python-values/src/value.ts";

/**
 * Returns the tools with empty `properties` where a tool's parameters have none, which means the same, or `undefined`
 * if all have them. Some chat templates, for example Seed-OSS's, read them from every tool.
 */
export function withProperties(tools: readonly PyValue[] | null): readonly PyValue[] | undefined {
  const whole = tools?.map(wholeTool);
  return whole?.some((tool, index) => tool !== tools![index]) ? whole : undefined;
}

function wholeTool(tool: PyValue): PyValue {
  const about = isPyDict(tool) ? tool.get("function") : undefined;
  const parameters = isPyDict(about) ? about.get("parameters") : undefined;
  if (!isPyDict(tool) || !isPyDict(about) || !isPyDict(parameters)) return tool;
  if (parameters.has("properties")) return tool;
  const whole = new Map([...parameters, ["properties", new Map<string, PyValue>()]] as const);
  return new Map([
    ...tool,
    ["function", new Map([...about, ["parameters", whole]] as const)],
  ] as const);
}
