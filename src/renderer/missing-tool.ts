import type { PyValue } from "../python/value.ts";
import { isPyDict } from "../python/value.ts";

/**
 * The name of the first tool that a prompt does not hold, or `undefined` where it holds all: a policy
 * that is not shown its tools can only guess them.
 *
 * @param tools definitions in OpenAI's shape; those without a name are passed over.
 */
export function missingTool(prompt: string, tools: readonly PyValue[] | null): string | undefined {
  for (const tool of tools ?? []) {
    const name = nameOf(tool);
    if (name !== undefined && !prompt.includes(name)) return name;
  }
  return undefined;
}

function nameOf(tool: PyValue): string | undefined {
  const body = isPyDict(tool) ? tool.get("function") : undefined;
  const name = isPyDict(body) ? body.get("name") : undefined;
  return typeof name === "string" ? name : undefined;
}
