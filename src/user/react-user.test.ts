import { describe, expect, test } from "vitest";
import { RolloutError } from "../errors.ts";
import { readReactLine } from "./react-user.ts";
import type { UserRepairChoice } from "./user-repairs.ts";

function read(reply: string, repair: UserRepairChoice = []): string {
  try {
    return readReactLine(reply, repair);
  } catch (error) {
    expect(error).toBeInstanceOf(RolloutError);
    return (error as RolloutError).code;
  }
}

describe("readReactLine()", () => {
  test.each([
    ["Thought: x\nUser Response: hi", "x\nUser Response: hi", "hi"],
    ["User Response: \u00a0hi\u001f ", "hi", "hi"],
    ["Thought: only a thought", "only a thought", "user/bad-reply"],
    ["Thought: ###STOP### not yet\nUser Response: hi", "###STOP###", "hi"],
    ["Thought: done\nUser Response: ###STOP### bye", "###STOP###", "###STOP###"],
    ["###STOP###", "###STOP###", "###STOP###"],
    ["Thought: a Thought: b\nUser Response: hi", "user/bad-reply", "hi"],
    ["User Response: a\nUser Response: b", "user/bad-reply", "b"],
    ["hi", "user/bad-reply", "user/bad-reply"],
    ["thought: hi", "user/bad-reply", "user/bad-reply"],
    ["**Thought:** x\n**User Response:** hi", "** x\n**User Response:** hi", "hi"],
    ["**Thought**: x\n**User Response**: **hi**", "user/bad-reply", "**hi**"],
    ["### Thought\nx\n### user response :\nhi", "user/bad-reply", "hi"],
    ["User Response: hi\n\nThought: x ###STOP###", "###STOP###", "hi"],
    ["User Response: hi\n**Thought:** x", "** x", "hi"],
    ["Thought: x\nUser Response: a\nThought: y\nUser Response: b", "user/bad-reply", "b"],
  ])("reads %j as the original does, and repaired", (reply, original, repaired) => {
    expect(read(reply)).toBe(original);
    expect(read(reply, ["thought-leak", "stop-in-thought", "labels"])).toBe(repaired);
  });
});
