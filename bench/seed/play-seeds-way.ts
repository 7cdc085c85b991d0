import type { Agent } from "../../src/agent/agent.ts";
import type { Environment } from "../../src/environment/environment.ts";
import type { ChatTemplate } from "../../packages/chat-template/src/chat-template.ts";
import type { Message, ToolDefinition } from "../../src/message.ts";
import { toTemplateMessage, toTemplateTools } from "../../src/renderer/openai-messages.ts";
import type { PlannedEpisode } from "../../src/run/schedule/plan-run.ts";
import type { TokenCodec } from "../../src/tokenizer/codec.ts";
import type { User } from "../../src/user/user.ts";

/** Parts that the episodes of slime's example are played with. */
export interface SeedsWay {
  readonly environment: Environment;
  readonly user: User;
  readonly agent: Agent;
  readonly template: ChatTemplate;
  readonly codec: TokenCodec;
  readonly engineUrl: string;
}

/**
 * Plays an episode as slime's example does. For each turn it renders the complete conversation and sends
 * it as text, without logprobs. Then it renders the conversation before and after each message, and
 * encodes the difference for the training row.
 *
 * **Source:** THUDM/slime examples/tau-bench/trainable_agents.py.
 *
 * @returns the number of turns.
 */
export async function playSeedsWay(planned: PlannedEpisode, way: SeedsWay): Promise<number> {
  const { environment, agent } = way;
  const { task, seed } = planned;
  const { signal } = new AbortController();
  await using world = await environment.open(task, {
    user: way.user.open(task, { seed }),
    signal,
  });
  const { policyText, tools: all } = environment;
  const firstUserText = await world.begin({ signal });
  const opening = agent.open({
    policyText,
    tools: all,
    firstUserText,
    seed,
    taskIndex: task.index,
  });
  const { messages, tools } = { ...opening, messages: [...opening.messages] };
  const row: { readonly ids: number[]; readonly mask: number[] } = { ids: [], mask: [] };
  for (let turnIndex = 0; ; turnIndex++) {
    const text = await sample(render(messages, { tools, isPrompt: true }, way), turnIndex, way);
    const reading = agent.read({
      text: text.replace("<|im_end|>", ""),
      tools,
      turnIndex,
      finish: "stop",
      reasoningOpened: false,
    });
    const [intent] = reading.intents;
    if (intent?.type !== "act") throw new Error(`Cannot play turn ${turnIndex}: it does nothing`);
    await append(row, { messages, tools, added: reading.message }, way);
    const { done, from, observation, source } = await world.step(intent.action, { signal });
    if (done !== undefined) {
      await world.score({ signal });
      return turnIndex + 1;
    }
    const observed = { callId: intent.callId, name: source, from, text: observation };
    for (const added of agent.observe([observed])) {
      await append(row, { messages, tools, added }, way);
    }
  }
}

async function append(
  row: { readonly ids: number[]; readonly mask: number[] },
  { messages, tools, added }: { messages: Message[]; tools: Tools; added: Message },
  way: SeedsWay,
): Promise<void> {
  const isSampled = added.role === "assistant";
  const before = render(messages, { tools, isPrompt: isSampled }, way);
  messages.push(added);
  const after = render(messages, { tools, isPrompt: !isSampled }, way);
  for (const id of await way.codec.encode(after.slice(before.length))) {
    row.ids.push(id);
    row.mask.push(isSampled ? 1 : 0);
  }
}

type Tools = readonly ToolDefinition[];

function render(
  messages: readonly Message[],
  { tools, isPrompt }: { readonly tools: Tools; readonly isPrompt: boolean },
  { template }: SeedsWay,
): string {
  return template.render({
    messages: messages.map(toTemplateMessage),
    tools: toTemplateTools(tools),
    addGenerationPrompt: isPrompt,
    variables: new Map(),
  });
}

async function sample(text: string, turnIndex: number, { engineUrl }: SeedsWay): Promise<string> {
  const response = await fetch(`${engineUrl}/generate`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-turn": `${turnIndex}` },
    body: JSON.stringify({
      text,
      sampling_params: { temperature: 0, max_new_tokens: 512, top_p: 0.9, top_k: 50 },
    }),
  });
  return ((await response.json()) as { readonly text: string }).text;
}
