import { instructTemplate } from "../agent/tool-use-policy.ts";
import { createRenderer } from "../renderer/create-renderer.ts";
import type { Renderer } from "../renderer/renderer.ts";
import type { RunConfig } from "./config/run-config.ts";

/**
 * The renderer of a configuration, its chat template telling the policy how many calls it may make
 * where that is the place for it.
 *
 * @throws UsageError as `createRenderer()` and `instructTemplate()` do.
 */
export async function createRunRenderer({
  renderer,
  agent,
}: Pick<RunConfig, "renderer" | "agent">): Promise<Renderer> {
  return await createRenderer({
    ...renderer,
    ...("toolUse" in agent && {
      editTemplate: (source: string) => instructTemplate(source, agent.toolUse),
    }),
  });
}
