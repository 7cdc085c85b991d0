/** A tool as a client knows it that groups its tools, as Codex does those of MCP servers. */
interface NamespacedName {
  readonly namespace: string;
  readonly name: string;
}

/**
 * The one name by which the policy knows a tool of a namespace. `functions` is the one of tools that stand
 * in none.
 */
export function flatName({ namespace, name }: NamespacedName): string {
  if (namespace === "" || namespace === "functions") return name;
  return `${namespace}${namespace.endsWith("__") ? "" : "__"}${name}`;
}

/**
 * The tools of a request that stand in namespaces, by the names that the policy knows them by.
 *
 * @param tools - As the request has them.
 */
export function namespacedTools(tools: unknown): ReadonlyMap<string, NamespacedName> {
  const found = new Map<string, NamespacedName>();
  if (!Array.isArray(tools)) return found;
  for (const { type, name: namespace, tools: inner } of tools as readonly Group[]) {
    if (type !== "namespace" || typeof namespace !== "string" || !Array.isArray(inner)) continue;
    for (const { name } of inner as readonly Group[]) {
      if (typeof name !== "string") continue;
      const whole = { namespace, name };
      found.set(flatName(whole), whole);
    }
  }
  return found;
}

interface Group {
  readonly type?: unknown;
  readonly name?: unknown;
  readonly tools?: unknown;
}
