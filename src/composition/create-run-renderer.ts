import { instructTemplate } from "../agent/tool-use-policy.ts";
import { createRenderer } from "../renderer/create-renderer.ts";
import type { Renderer } from "../renderer/renderer.ts";
import type { RunConfig } from "./config/run-config.ts";

/**
 * Creates a configuration's renderer. If the number of calls per turn is configured, its chat template states the
 * number.
 * @throws UsageError as `createRenderer()` and `instructTemplate()` do.
 */
export async function createRunRenderer({
  renderer,
  agent,
}: Pick<RunConfig, "agent"> & Required<Pick<RunConfig, "renderer">>): Promise<Renderer> {
  return await createRenderer({
    ...renderer,
    ...("toolUse" in agent && {
      editTemplate: (source: string) => instructTemplate(source, agent.toolUse),
    }),
  });
}
