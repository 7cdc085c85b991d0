import type { Generation } from "../../engine/engine.ts";
import type { ClientAssistant, ClientMessage, ReplyPart } from "../conversation.ts";
import { defaultIgnore } from "./message-keys.ts";
import { pathTo, recordPath, type PathTurn } from "./record-path.ts";
import { SessionTree } from "./session-tree.ts";
import { toSentTurn, type TurnNode } from "./turn-node.ts";

/** One action of a client. The numbers choose among the available turns. */
export interface ClientStep {
  readonly kind: "begin" | "continue" | "edit" | "again" | "compact" | "resume";
  /** The earlier turn to continue. */
  readonly turn: number;
  /** The turn on its path to edit. */
  readonly edited: number;
  readonly calls: 0 | 1 | 2;
  readonly saysText: boolean;
  readonly isDelivered: boolean;
  readonly isTrainable: boolean;
  readonly habits: ClientHabits;
}

/** The changes that a client makes to a turn before it sends it back. */
export interface ClientHabits {
  readonly respells: boolean;
  readonly dropsReasoning: boolean;
  readonly dropsText: boolean;
  readonly reordersResults: boolean;
  readonly renamesCalls: boolean;
  readonly addsUserText: boolean;
}

type Kept = PathTurn & {
  readonly promptIds: readonly number[];
  readonly environment: readonly ClientMessage[];
  readonly labels: Readonly<Record<string, string>>;
};

/** The client's order for a summary. */
const order = "Summarise the conversation so far in one sentence, for another agent.";

/** A session of a random client, with the expected tree. */
export class RandomSession {
  readonly tree = new SessionTree<Kept>({ ignore: defaultIgnore, strictness: "calls" });
  /** The turn that each request should continue, and the one that it did. */
  readonly placed: {
    readonly expected: number | undefined;
    readonly actual: number | undefined;
  }[] = [];
  #count = 0;

  play(step: ClientStep): void {
    const { nodes } = this.tree;
    const target = nodes[step.turn % Math.max(nodes.length, 1)];
    if (step.kind === "begin" || target === undefined) {
      const opening: ClientMessage[] = [
        { role: "system", content: "Be brief." },
        { role: "user", content: `question ${this.#count}` },
      ];
      this.#ask(opening, undefined, step);
    } else if (step.kind === "again") {
      const path = pathTo(target);
      const before = path.slice(0, -1).flatMap((node) => this.#exchange(node, step.habits));
      const environment = this.#sendEnvironment(target, step.habits);
      this.#ask([...before, ...environment], path.at(-2), step);
    } else if (step.kind === "resume") {
      const opening: ClientMessage[] = [
        { role: "system", content: "Be brief." },
        { role: "user", content: `So far ${this.#count}:\n  ${target.turn.text}` },
      ];
      this.#ask(opening, undefined, step);
    } else {
      const path = pathTo(target);
      const at = step.kind === "edit" ? step.edited % path.length : -1;
      const messages = path.flatMap((node, place) => {
        const exchange = this.#exchange(node, step.habits);
        return place === at ? exchange.map(edit) : exchange;
      });
      const answers = [
        ...this.#answer(target, step.habits),
        ...(step.kind === "compact" ? [{ role: "user", content: order } as const] : []),
      ];
      this.#ask([...messages, ...answers], step.kind === "edit" ? path[at - 1] : target, step);
    }
  }

  /** Returns the client's messages for a turn and its environment. */
  #exchange(node: TurnNode<Kept>, habits: ClientHabits): readonly ClientMessage[] {
    return [...this.#sendEnvironment(node, habits), sendBack(node, habits)];
  }

  /** Results follow the order of the calls, with the ids of the turn as it is sent. */
  #sendEnvironment(
    { parent, record }: TurnNode<Kept>,
    habits: ClientHabits,
  ): readonly ClientMessage[] {
    let ids = parent?.turn.calls.map(({ id }) => id) ?? [];
    let place = 0;
    return record.environment.map((message): ClientMessage => {
      if (message.role === "assistant") {
        ids = message.calls.map(({ id }) => id);
        place = 0;
        const calls = message.calls.map((call, index) => ({
          ...call,
          id: habits.renamesCalls ? `mine_${index}` : call.id,
        }));
        return { ...message, calls };
      }
      if (message.role !== "tool") return message;
      const index = place++;
      const callId = habits.renamesCalls ? `mine_${index}` : (ids[index] ?? message.callId);
      return { ...message, callId };
    });
  }

  #answer(node: TurnNode<Kept>, habits: ClientHabits): readonly ClientMessage[] {
    const results = node.turn.calls.map(({ id }, index): ClientMessage => {
      const callId = habits.renamesCalls ? `mine_${index}` : id;
      return { role: "tool", callId, content: `result ${this.#count}.${index}` };
    });
    const said: ClientMessage = { role: "user", content: `go on ${this.#count}` };
    const ordered = habits.reordersResults ? results.toReversed() : results;
    return results.length === 0 || habits.addsUserText ? [...ordered, said] : ordered;
  }

  #ask(
    messages: readonly ClientMessage[],
    expected: TurnNode<Kept> | undefined,
    step: ClientStep,
  ): void {
    const placement = this.tree.place({ messages, tools: [] });
    this.placed.push({ expected: expected?.index, actual: placement.parent?.index });
    const index = this.#count++;
    // Ids that no other turn has, so that each can be found.
    const outputIds = [1, 2, 3].map((place) => 1000 + index * 10 + place);
    const delta = { ids: [2, index], text: "", closeSynthesised: false };
    const prompt: PathTurn["prompt"] =
      placement.parent === undefined ? { type: "root", ids: [1, index] } : { type: "delta", delta };
    const promptIds = promptAfter(placement.parent, prompt);
    this.tree.add(placement, {
      turn: toSentTurn(replyParts(index, step)),
      isDelivered: step.isDelivered,
      record: {
        generation: generationOf(outputIds, index),
        prompt,
        promptIds,
        isTrainable: step.isTrainable,
        environment: placement.environment,
        labels: {},
      },
    });
  }
}

/** Returns a turn's prompt, built from the tree. */
export function promptOf({ parent, record }: TurnNode<PathTurn>): readonly number[] {
  return promptAfter(parent, record.prompt);
}

function promptAfter(
  parent: TurnNode<PathTurn> | undefined,
  prompt: PathTurn["prompt"],
): readonly number[] {
  if (prompt.type === "root") return prompt.ids;
  const recorder = recordPath(pathTo(parent!));
  recorder.appendDelta(prompt.delta);
  return [...recorder.promptIds];
}

function generationOf(outputIds: readonly number[], index: number): Generation {
  return {
    outputIds,
    logprobs: outputIds.map((_, place) => -(index + place + 1) / 64),
    finish: { type: "stop" },
    pieces: [
      {
        requestId: `r${index}`,
        tokenCount: outputIds.length,
        policyVersion: "v1",
        finish: "stop",
      },
    ],
    discarded: [],
  };
}

function replyParts(index: number, { kind, calls, saysText }: ClientStep): readonly ReplyPart[] {
  if (kind === "compact") {
    const text = `<summary>\nThe user asked a question, and got answer ${index}.\n</summary>`;
    return [{ type: "text", id: `msg_${index}`, text }];
  }
  const said: ReplyPart[] = [
    { type: "reasoning", id: `rs_${index}`, signature: `sig_${index}`, text: "I think." },
  ];
  if (saysText || calls === 0)
    said.push({ type: "text", id: `msg_${index}`, text: `turn ${index}\n` });
  for (let place = 0; place < calls; place++) {
    said.push({
      type: "call",
      id: `fc_${index}_${place}`,
      callId: `call_${index}_${place}`,
      name: "look",
      text: `{ "n":  1.0, "b": 1e3, "a": "${index}-${place}\\u00fc" }`,
    });
  }
  return said;
}

function sendBack({ turn }: TurnNode<Kept>, habits: ClientHabits): ClientAssistant {
  const calls = turn.calls.map(({ id, name, argumentsText }, index) => ({
    id: habits.renamesCalls ? `mine_${index}` : id,
    name,
    argumentsText: habits.respells ? respell(argumentsText) : argumentsText,
  }));
  const isSilent = habits.dropsText && calls.length > 0;
  return {
    role: "assistant",
    content: isSilent ? "" : turn.text,
    ...(!habits.dropsReasoning && { reasoning: "I think." }),
    calls,
    marks: [],
  };
}

function respell(text: string): string {
  const value = JSON.parse(text) as Readonly<Record<string, unknown>>;
  return JSON.stringify(Object.fromEntries(Object.entries(value).toReversed()));
}

/** Changes the assistant's text or calls only. */
function edit(message: ClientMessage): ClientMessage {
  if (message.role !== "assistant") return message;
  const [first, ...others] = message.calls;
  if (first === undefined) return { ...message, content: `${message.content} (edited)` };
  return { ...message, calls: [{ ...first, argumentsText: '{"n": 2}' }, ...others] };
}
