import { parsePythonJson } from "../../../packages/python-values/src/json/json-parse.ts";
import { toolsFromOpenAi } from "../../message.ts";
import type { ClientMessage } from "../conversation.ts";
import { defaultIgnore } from "../tree/message-keys.ts";
import { SessionTree } from "../tree/session-tree.ts";
import { toSentTurn } from "../tree/turn-node.ts";
import type { ClientLabels } from "./client-labels.ts";
import { lineageOf } from "./derive-lineage.ts";
import type { LineageTurn } from "./turn-evidence.ts";

/** A call that a turn makes: the tool's name and its arguments. */
export type MadeCall = readonly [name: string, given: object];

/** One request of a client, and the reply that is sampled for it. */
interface Asked {
  readonly messages: readonly ClientMessage[];
  /** The text of the reply. */
  readonly text?: string;
  readonly calls?: readonly MadeCall[];
  /** Names of the request's tools. */
  readonly tools?: readonly string[];
  readonly labels?: ClientLabels;
}

/** A session that a test plays request by request. */
export class PlayedSession {
  readonly tree = new SessionTree<LineageTurn>({ ignore: defaultIgnore, strictness: "calls" });

  /** Samples a reply, and returns it as the client sends it back. */
  ask({ messages, text = "", calls = [], tools = [], labels = {} }: Asked): ClientMessage {
    const index = this.tree.nodes.length;
    const placement = this.tree.place({ messages, tools: toolsNamed(tools) });
    const made = calls.map(([name, given], place) => {
      return { id: `call_${index}_${place}`, name, argumentsText: JSON.stringify(given) };
    });
    const turn = toSentTurn([
      ...(text === "" ? [] : [{ type: "text", id: "", text } as const]),
      ...made.map(({ id: callId, name, argumentsText }) => {
        return { type: "call", id: "", callId, name, text: argumentsText } as const;
      }),
    ]);
    const record = { environment: placement.environment, labels };
    this.tree.add(placement, { turn, record, isDelivered: true });
    return { role: "assistant", content: text, calls: made, marks: [] };
  }

  /** The lineage of each turn in one line: `ROLE EDGE<-TURN !EVIDENCE`. */
  get lines(): readonly string[] {
    return lineageOf(this.tree.nodes).map(({ role, from, rejected }) =>
      [
        role,
        ...(from === undefined ? [] : [`${from.edge}<-${from.turn}`]),
        ...(rejected === undefined ? [] : [`!${rejected}`]),
      ].join(" "),
    );
  }
}

function toolsNamed(names: readonly string[]) {
  const functions = names.map((name) => ({
    type: "function",
    function: { name, description: name, parameters: { type: "object", properties: {} } },
  }));
  return toolsFromOpenAi(parsePythonJson(JSON.stringify(functions)), "tools");
}

export const system = (content: string): ClientMessage => ({ role: "system", content });
export const user = (content: string): ClientMessage => ({ role: "user", content });

/** The result of a turn's call, by the turn's index and the call's place. */
export const result = (content: string, turn: number, place = 0): ClientMessage => {
  return { role: "tool", callId: `call_${turn}_${place}`, content };
};
