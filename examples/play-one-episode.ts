import type { Episode } from "turnwright";
import { createToolCallingAgent, toolUsePolicies } from "turnwright/agent";
import { createSglangEngine } from "turnwright/engine";
import { defaultLimits, playEpisode } from "turnwright/episode";
import { findToolCallParser } from "turnwright/parser";
import { createRenderer } from "turnwright/renderer";
import { createStorefront, createStorefrontUser } from "turnwright/environments/storefront";

/** Plays one task of the built-in shop against the SGLang server at `url`. */
export async function playOneEpisode(url: string, modelDir: string): Promise<Episode> {
  const environment = createStorefront();
  const engine = createSglangEngine({ url });
  try {
    return await playEpisode(
      {
        task: environment.task("test", 0),
        rolloutId: "storefront/test/0#0",
        groupId: "storefront/test/0",
        sampleIndex: 0,
        seed: 0,
      },
      {
        environment,
        user: createStorefrontUser(),
        engine,
        renderer: await createRenderer({ modelDir }),
        agent: createToolCallingAgent({
          parser: findToolCallParser("qwen25"),
          toolUsePolicy: toolUsePolicies.many,
        }),
        sampling: { temperature: 1 },
        limits: defaultLimits,
        now: Date.now,
      },
      { signal: AbortSignal.timeout(60_000) },
    );
  } finally {
    await engine.close();
  }
}
