import type { PyValue } from "../../python/value.ts";
import { isPyDict } from "../../python/value.ts";

/**
 * The name of the first tool that a prompt does not hold, or `undefined` where it holds all: a policy
 * that is not shown its tools can only guess them.
 *
 * @param tools definitions in OpenAI's shape; those without a name are passed over.
 */
export function missingTool(prompt: string, tools: readonly PyValue[] | null): string | undefined {
  // Templates print tools in their order, so that each is found behind the one before it.
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
