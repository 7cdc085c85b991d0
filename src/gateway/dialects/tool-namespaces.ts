/** The name of a tool in a namespace, as Codex groups the tools of MCP servers. */
interface NamespacedName {
  readonly namespace: string;
  readonly name: string;
}

/**
 * Returns the single name by which the policy knows a namespaced tool. Tools of the namespace
 * `functions` keep their own name.
 */
export function flatName({ namespace, name }: NamespacedName): string {
  if (namespace === "" || namespace === "functions") return name;
  return `${namespace}${namespace.endsWith("__") ? "" : "__"}${name}`;
}

/**
 * Returns the namespaced tools of a request, by the policy's names for them.
 *
 * @param tools - The request's `tools`.
 */
export function namespacedTools(tools: unknown): ReadonlyMap<string, NamespacedName> {
  const found = new Map<string, NamespacedName>();
  if (!Array.isArray(tools)) return found;
  for (const { type, name: namespace, tools: inner } of tools as readonly Group[]) {
    if (type !== "namespace" || typeof namespace !== "string" || !Array.isArray(inner)) continue;
    for (const { name } of inner as readonly Group[]) {
      if (typeof name !== "string") continue;
      const fullName = { namespace, name };
      found.set(flatName(fullName), fullName);
    }
  }
  return found;
}

interface Group {
  readonly type?: unknown;
  readonly name?: unknown;
  readonly tools?: unknown;
}
