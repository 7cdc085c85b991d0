import { describe, expect, test } from "vitest";
import { leaveOutThoughts } from "./leave-out-thoughts.ts";

describe("leaveOutThoughts()", () => {
  test.each([
    ["<think>\nhm\n</think>\n\nHi", "Hi"],
    ["hm\n</think>\n\nHi", "Hi"],
    ["a</think>b</think>Hi", "Hi"],
    ["<think>a</think><think>b</think>Hi", "Hi"],
    ["<think>a</think>\nHi\n<think>b</think>\nBye", "Hi\nBye"],
    ["<think>a <think>b</think> c</think>Hi", "Hi"],
    ["Hi\n<think>Did I say too much?</think>", "Hi"],
    ["Hi <think>Did I", "Hi"],
    ["<think></think>Hi", "Hi"],
    ["<Think>a</THINK>Hi", "Hi"],
    ['<think time="3s">a</think >Hi', "Hi"],
    ["<thinking>I write <think>.</thinking>Hi", "Hi"],
    ["<thought>a</thought>Hi", "Hi"],
    ["<reasoning>a</reasoning>Hi", "Hi"],
    ["<scratchpad>a</scratchpad>Hi", "Hi"],
    ["<mm:think>a</mm:think>Hi", "Hi"],
    ["<seed:think>a</seed:think>Hi", "Hi"],
    ["[THINK]a[/THINK]Hi", "Hi"],
    ["a[/THINK]Hi", "Hi"],
    ["◁think▷a◁/think▷Hi", "Hi"],
    ["<|START_THINKING|>a<|END_THINKING|>Hi", "Hi"],
    ["<|begin_of_thought|>a<|end_of_thought|>Hi", "Hi"],
    ["<|channel>thought\na<channel|>Hi", "Hi"],
    ["<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>Hi", "Hi"],
    ["<|channel|>final<|message|>Hi<|return|>", "Hi"],
    ["analysisWe are the user.assistantfinalHi", "Hi"],
    ["assistantfinalHi", "Hi"],
    ["<analysis>a</analysis>Hi", "Hi"],
    ["<reflection>a</reflection>Hi", "Hi"],
    ["<inner_monologue>a</inner_monologue >Hi", "Hi"],
    ["<|inner_prefix|>a<|inner_suffix|>Hi", "Hi"],
    ["<unused94>thought\na<unused95>Hi", "Hi"],
    ["Here is my thought process:\na\nHere is my response:\nHi", "Hi"],
    ["Here's my thought process: a\n\nHere's my response: Hi", "Hi"],
    ["<think>\na\n</think>\n<answer>\nHi\n</answer>", "Hi"],
    ["<answer>Hi", "Hi"],
    ["<think>\na\n</think>\n\n<response>\nHi\n</response>\n", "Hi"],
    ["a\n</think>\n\n<response>\nHi", "Hi"],
    ["<think>a</think><final>Hi</final>", "Hi"],
    ["<|begin_of_thought|>a<|end_of_thought|>\n<|begin_of_solution|>Hi<|end_of_solution|>", "Hi"],
    ["<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>Hi<|END_RESPONSE|>", "Hi"],
    ["a\n[BEGIN FINAL RESPONSE]\nHi\n[END FINAL RESPONSE]\n<|end|>", "Hi"],
    ["Here are my reasoning steps:\na\n[BEGIN FINAL RESPONSE]\nHi", "Hi"],
    ["<longcat_think>a</longcat_think>Hi", "Hi"],
    ["<REASONING_SCRATCHPAD>a</REASONING_SCRATCHPAD>Hi", "Hi"],
    ["<antThinking>a</antThinking>Hi", "Hi"],
    ["a</ifm|think_fast>Hi", "Hi"],
    ["<|open|>think<|sep|>a<|close|>think<|sep|><|open|>response<|sep|>Hi", "Hi"],
    ["<|think|>a<|/think|>Hi", "Hi"],
    ["a</|/think|>Hi", "Hi"],
    ["a<//think>Hi", "Hi"],
    ["<think/>Hi", "Hi"],
    ["<think />Hi <thinking/>there", "Hi\nthere"],
    ["<think>The tag </thinking> ends it.</think>Hi", "Hi"],
    ["Order 12.\nHuman\n<think>The PIN is 7", "Order 12."],
    ["Order 12.\n\nAssistant:\n<think>a</think>It is on its way.", "Order 12."],
    ["Order 12.\n<|im_end|>\n<|im_start|>user\n<think>a</think>And 13.", "Order 12."],
    ["User:\n<think>a</think>Hi", "Hi"],
    ["The PIN is 7.\nHuman\n<think>a</think>b</think>Hi", "Hi"],
    ["I am human <think>a</think>indeed", "I am human\nindeed"],
    ["To: the\nsales agent <think>a</think>Hi", "To: the\nsales agent\nHi"],
  ])("removes the reasoning of %j", (reply, line) => {
    expect(leaveOutThoughts(reply)).toBe(line);
  });

  test.each([
    "<think>hm, I",
    "hm</think>",
    "<think>a</think>",
    "[THINK]a",
    "<|channel|>analysis<|message|>The PIN",
    "analysisWe need to",
    "Here is my thought process: the PIN",
    "Here are my reasoning steps:\nthe PIN",
    "<think>a</thinking>the PIN",
    "<|think|>the PIN",
  ])("returns an empty text for %j, which is all reasoning", (reply) => {
    expect(leaveOutThoughts(reply)).toBe("");
  });

  test.each([
    " Hi \n",
    "I think <b>it</b> broke.",
    "analysis of my bill, please",
    "My order of <thinker> books",
    "Here is my response: I want it back.",
    "The form asks for an <answer> to each question.",
    "I got no <response> to my letter.",
  ])("keeps %j unchanged", (reply) => {
    expect(leaveOutThoughts(reply)).toBe(reply);
  });
});
