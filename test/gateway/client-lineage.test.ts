import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { ReplyPart } from "../../src/gateway/conversation.ts";
import { dialects } from "../../src/gateway/dialects/registry.ts";
import { labelsOf } from "../../src/gateway/lineage/client-labels.ts";
import { lineageOf } from "../../src/gateway/lineage/derive-lineage.ts";
import type { LineageTurn } from "../../src/gateway/lineage/turn-evidence.ts";
import { defaultIgnore } from "../../src/gateway/tree/message-keys.ts";
import { SessionTree } from "../../src/gateway/tree/session-tree.ts";
import { toSentTurn } from "../../src/gateway/tree/turn-node.ts";

/**
 * A session of a client that is on the registries, as it was played through the gateway with a
 * scripted policy. Texts of the client are placeholders: equal texts have equal placeholders.
 */
interface Recording {
  readonly client: string;
  readonly version: string;
  /** In the order in which the turns were sampled. */
  readonly exchanges: readonly {
    readonly path: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: object;
    /** The reply. */
    readonly parts: readonly ReplyPart[];
  }[];
}

const folder = new URL("recorded-clients/", import.meta.url);

/** Places a recording's requests in a tree. Returns each turn's lineage in one line. */
function replay({ exchanges }: Recording): readonly string[] {
  const tree = new SessionTree<LineageTurn>({ ignore: defaultIgnore, strictness: "calls" });
  for (const { path, headers, body, parts } of exchanges) {
    const dialect = Object.values(dialects).find((each) => path.endsWith(`/v1${each.path}`))!;
    const requested = dialect.decode(body);
    const placement = tree.place(requested);
    const labels = labelsOf(new Headers(headers), requested);
    const record = { environment: placement.environment, labels };
    tree.add(placement, { turn: toSentTurn(parts), record, isDelivered: true });
  }
  return lineageOf(tree.nodes).map(({ role, from, rejected = "" }, index) => {
    const { parent, cause } = tree.nodes[index]!;
    const link = from === undefined ? "" : `${from.edge}<-${from.turn}`;
    return [parent?.index ?? cause, role, link, rejected].join(" ").trim().replaceAll(/ +/g, " ");
  });
}

const expected: Readonly<Record<string, readonly string[]>> = {
  // Two sub-agents, then /compact. The policy answers the first order for a summary with a call.
  "claude-code-compact": [
    "first main",
    "new-conversation subagent subagent_call<-0",
    "new-conversation subagent subagent_call<-0",
    "1 subagent",
    "2 subagent",
    "0 main subagent_return<-4",
    "0 compaction compaction_attempt<-0 later-summary",
    "0 compaction compaction_attempt<-0",
    "foreign-assistant main compaction<-7",
    "8 main",
  ],
  // The context is full. So is the one after the first summary, and the client compacts again.
  "claude-code-overflow": [
    "first main",
    "0 main continuation<-0",
    "1 main",
    "0 compaction compaction_attempt<-0",
    "moved-turn compaction compaction<-3",
    "moved-turn main compaction<-4",
  ],
  // A reply was lost on its way. The client sends the request again, without a mark.
  "claude-code-retry": [
    "first main",
    "0 retry continuation<-0 resumed-sibling",
    "0 main continuation<-0",
    "2 main",
  ],
  // An interactive session begins with a title.
  "claude-code-title": ["first title", "new-conversation main"],
  // A sub-agent that is waited for, then a compaction at a token limit.
  "codex-compact": [
    "first main",
    "0 main",
    "new-conversation subagent subagent_call<-0",
    "2 subagent",
    "1 main subagent_return<-3",
    "4 main",
    "tools-changed compaction compaction_attempt<-5",
    "new-conversation main compaction<-6",
  ],
  // A title, a sub-agent, and a compaction at the model's limit.
  "opencode-compact": [
    "first title",
    "new-conversation main",
    "new-conversation subagent subagent_call<-1",
    "2 subagent",
    "1 main subagent_return<-3",
    "4 main",
    "5 main",
    "6 main",
    "new-conversation compaction compaction_attempt<-7",
    "foreign-assistant main compaction<-8",
  ],
  // An agent as a tool; then a second conversation with a hand-over to another agent.
  "openai-agents": [
    "first main",
    "new-conversation subagent subagent_call<-0",
    "0 main subagent_return<-1",
    "new-conversation unknown",
    "moved-turn unknown continuation<-3",
  ],
};

describe("sessions of real clients", () => {
  test("each recording is expected", () => {
    const names = readdirSync(folder).map((name) => name.replace(/\.json$/, ""));
    expect(names.toSorted()).toEqual(Object.keys(expected).toSorted());
  });

  test.each(Object.keys(expected))("%s: roles, links and rejections", (name) => {
    const text = readFileSync(new URL(`${name}.json`, folder), "utf8");
    expect(replay(JSON.parse(text) as Recording)).toEqual(expected[name]);
  });
});
