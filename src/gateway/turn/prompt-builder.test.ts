import { describe, expect, test } from "vitest";
import type { Generation } from "../../engine/engine.ts";
import { characterIds, characterRenderer } from "../../testing/character-renderer.ts";
import { toSentTurn, type TurnNode } from "../tree/turn-node.ts";
import { idsBefore, pathTo } from "../tree/path-ids.ts";
import { PromptBuilder, type BuiltPrompt, type ShownTurn } from "./prompt-builder.ts";

function generationOf(text: string): Generation {
  const outputIds = characterIds(text);
  return {
    ...{ outputIds, logprobs: outputIds.map(() => -1), discarded: [] },
    finish: { type: "stop", matched: outputIds.at(-1)! },
    pieces: [{ requestId: "r", tokenCount: outputIds.length, policyVersion: "1", finish: "stop" }],
  };
}

function nodeOf(
  { prompt, shown }: BuiltPrompt,
  text: string,
  parent?: TurnNode<ShownTurn>,
): TurnNode<ShownTurn> {
  const message = { role: "assistant", content: text } as const;
  const turn = toSentTurn([{ type: "text", id: "m", text }]);
  const record = { prompt, shown, message, generation: generationOf(text), isTrainable: true };
  return {
    ...{ index: 0, parent, children: [], cause: undefined, turn, record, isDelivered: true },
  };
}

describe("PromptBuilder", () => {
  test("makes the same prompts of what it kept as of the tree, for branches too", async () => {
    const builder = new PromptBuilder(characterRenderer());
    const user = (content: string) => [{ role: "user", content } as const];
    const root = await builder.begin(user("Hi"), []);
    const begun = [...root.ids];
    const first = nodeOf(root, "Hello");
    builder.keep(first, root.ids);
    const prompts: { readonly ids: readonly number[]; readonly node: TurnNode<ShownTurn> }[] = [];
    let parent = first;
    for (const said of ["left", "right", "on"]) {
      // "right" continues the same turn as "left", whose prompt is used up by then.
      const behind = said === "right" ? first : parent;
      const built = await builder.continue(behind, user(said), []);
      if ("cause" in built) throw new Error("the template goes on");
      const node = nodeOf(built, `to ${said}`, behind);
      prompts.push({ ids: [...built.ids], node });
      builder.keep(node, built.ids);
      parent = node;
    }
    for (const { ids, node } of prompts) expect(ids).toEqual(idsBefore(pathTo(node)));
    expect(root.prompt).toEqual({ type: "root", ids: begun });
  });
});
