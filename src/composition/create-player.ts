import type { Agent } from "../agent/agent.ts";
import { createCommandAgent } from "../gateway/agent/command-agent.ts";
import type { ForeignAgent } from "../gateway/agent/foreign-agent.ts";
import { createForeignPlayer } from "../gateway/agent/foreign-player.ts";
import { loadAgent } from "../gateway/agent/load-agent.ts";
import { ownBug, UsageError } from "../errors.ts";
import type { Renderer } from "../renderer/renderer.ts";
import { whyUnplayable } from "../renderer/capability/why-unplayable.ts";
import type { EpisodeSetup } from "../episode/episode-setup.ts";
import type { ForeignAgentConfig } from "./config/agent-config.ts";

/** The player of a run's attempts, for agents that manage their own conversations. */
export interface CreatedPlayer extends Required<Pick<EpisodeSetup, "agent" | "play">> {
  close(): Promise<void>;
}

/**
 * Creates the player for a foreign agent: a module, a program, or an object.
 * @throws UsageError if the module does not exist, or if the model's chat template cannot continue
 *   a conversation.
 */
export async function createPlayer(
  chosen: ForeignAgentConfig | ForeignAgent,
  { renderer }: { readonly renderer?: Renderer },
): Promise<CreatedPlayer> {
  if (renderer === undefined) {
    throw new UsageError(
      "Cannot play an agent of your own with an engine that returns messages: the gateway that the agent calls records " +
        "token ids",
    );
  }
  const { card } = renderer;
  const why = whyUnplayable(card);
  if (why !== undefined) {
    throw new UsageError(`Cannot play with the chat template of ${card.source}: ${why}`);
  }
  const player = createForeignPlayer(await findAgent(chosen));
  return { agent: standIn, play: player.play, close: async () => await player.close() };
}

async function findAgent(chosen: ForeignAgentConfig | ForeignAgent): Promise<ForeignAgent> {
  if ("run" in chosen) return chosen;
  return chosen.strategy === "module"
    ? await loadAgent(chosen.file)
    : createCommandAgent(chosen.command);
}

/** A placeholder for the built-in strategy. It is never called. */
const standIn: Agent = {
  strategy: "foreign",
  open: refuse,
  read: refuse,
  observe: refuse,
};

function refuse(): never {
  throw ownBug("an agent that was written elsewhere plays attempts by itself");
}
