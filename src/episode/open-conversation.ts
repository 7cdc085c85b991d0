import type { Opening } from "../agent/agent.ts";
import type { World } from "../environment/environment.ts";
import { isTurnOver, takeTurn } from "../async/take-turn.ts";
import { RolloutError } from "../errors.ts";
import { opensReasoning } from "../renderer/continues.ts";
import { ConversationRefusal, HiddenTool } from "../renderer/render-prompt.ts";
import type { RenderedIds } from "../renderer/renderer.ts";
import { checkOpeningMessages } from "./check/check-agent.ts";
import { checkOpening } from "./check/check-foreign.ts";
import { crossBriefly, type Boundary } from "./boundary.ts";
import { rendererOf } from "./renderer-of.ts";
import { termsOf } from "./open-world.ts";
import { askWorld, callAgent, type Play } from "./play.ts";

/** Gets the user's first line and records the prompt of the first turn. */
export async function openConversation(play: Play, world: World): Promise<void> {
  const { assignment, setup } = play;
  const { agent, environment, limits } = setup;
  const { task, seed } = assignment;
  const firstUserText = await askWorld(
    play,
    {
      party: "environment",
      what: `begin task ${task.id}`,
      timeoutMs: limits.userTimeoutMs,
    },
    async (signal) =>
      checkOpening(
        await world.begin({ signal }),
        `world.begin() in task ${task.id} of ${environment.name}`,
      ),
    "begin",
  );
  const policyText = await readTerms(play, world);
  if (isTurnOver()) await takeTurn();
  const start = { policyText, tools: play.tools, firstUserText, seed, taskIndex: task.index };
  const opening = await callAgent(play, "open the conversation", () => agent.open(start));
  const place = `agent.open() of ${agent.strategy}`;
  const { messages, tools } = await callAgent(play, "use the opening", () =>
    checkOpeningMessages(opening, place),
  );
  play.messages.push(...messages);
  play.shownTools = tools;
  if (play.chat !== undefined) {
    play.chat.open({ messages, tools });
    return;
  }
  const prompt = await renderOpening(play, { messages, tools });
  play.recorder.openSegment(prompt.ids);
  play.reasoningOpened = opensReasoning(prompt.text);
}

/** Reads the tools and the policy text of the task. May run code of the world. */
async function readTerms(play: Play, world: World): Promise<string> {
  const { assignment, setup, watch } = play;
  const { limits } = setup;
  const what = `read what task ${assignment.task.id} is played by`;
  const { toolTimeoutMs: timeoutMs } = limits;
  const boundary = (): Boundary => ({ party: "environment", what, timeoutMs });
  return await crossBriefly(watch, boundary, () => {
    // A copy: the agent may change its list without changing other episodes.
    const { tools, policyText } = termsOf(play, world);
    play.tools = [...tools];
    return policyText;
  });
}

/** A conversation that the template refuses fails this attempt only. */
async function renderOpening(play: Play, { messages, tools }: Opening): Promise<RenderedIds> {
  try {
    const { promptTime: now } = play.setup;
    const renderer = rendererOf(play.setup);
    const prompt = await renderer.prompt({ messages, tools, ...(now && { now }) });
    if (prompt.ids.length > 0) return prompt;
    throw new ConversationRefusal("the chat template prints nothing, expected a prompt");
  } catch (cause) {
    if (cause instanceof HiddenTool) throw attributeHiddenTool(play, cause);
    if (!(cause instanceof ConversationRefusal)) throw cause;
    throw badOpening(play, cause);
  }
}

/**
 * Attributes a tool that the template hides. A tool of the environment is hidden in all tasks, which is a usage error.
 * A hidden tool of one world is a failure of that world, and any other hidden tool a failure of the agent.
 */
function attributeHiddenTool(play: Play, cause: HiddenTool): Error {
  const { assignment, setup, tools } = play;
  const { environment } = setup;
  const has = (given: Play["tools"]): boolean => given.some(({ name }) => name === cause.tool);
  if (!has(tools)) return badOpening(play, cause);
  if (has(environment.tools)) return cause;
  const whose = `Cannot play task ${assignment.task.id} of ${environment.name} with tools of its own`;
  return new RolloutError("environment/hidden-tool", `${whose}: ${cause.message}`, { cause });
}

function badOpening({ setup }: Play, cause: Error): RolloutError {
  const whose = `Cannot use the answer of agent.open() of ${setup.agent.strategy}`;
  return new RolloutError("agent/bad-opening", `${whose}: ${cause.message}`, { cause });
}
