import type { PyValue } from "../../../packages/python-values/src/value.ts";
import { isPyDict } from "../../../packages/python-values/src/value.ts";

/**
 * Returns the name of the first tool that a prompt does not contain, or `undefined` if it contains all. A policy
 * can only guess tools that it does not see.
 *
 * @param tools - Definitions in OpenAI's shape; those without a name are skipped.
 */
export function missingTool(prompt: string, tools: readonly PyValue[] | null): string | undefined {
  // Templates print tools in order, so each search starts after the previous tool.
  let from = 0;
  for (const tool of tools ?? []) {
    const name = nameOf(tool);
    if (name === undefined) continue;
    const place = prompt.indexOf(name, from);
    if (place >= 0) from = place;
    else if (!prompt.includes(name)) return name;
  }
  return undefined;
}

function nameOf(tool: PyValue): string | undefined {
  const body = isPyDict(tool) ? tool.get("function") : undefined;
  const name = isPyDict(body) ? body.get("name") : undefined;
  return typeof name === "string" ? name : undefined;
}
