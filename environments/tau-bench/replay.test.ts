import { afterAll, describe, expect, test } from "vitest";
import { openTinyTau } from "./tiny-tau-bundle.fixture.ts";
import { playActions } from "./play-actions.ts";
import { replayCalls } from "./replay.ts";

const signal = new AbortController().signal;
const tau = await openTinyTau();
const { retail, airline } = tau;
afterAll(() => tau[Symbol.asyncDispose]());

describe("replayCalls()", () => {
  test("answers each call and hashes the data after it, from fresh data every time", async () => {
    const calls = [
      { name: "calculate", argumentsText: '{"expression": "1/3"}' },
      {
        name: "cancel_pending_order",
        arguments: new Map([
          ["order_id", "#W1"],
          ["reason", "ordered by mistake"],
        ]),
      },
      { name: "nothing" },
      { name: "list_all_product_types" },
    ];
    const first = await replayCalls(retail, calls, { signal });
    expect(first.observations[0]).toBe("0.33");
    expect(first.observations.slice(2)).toEqual([
      "Unknown action nothing",
      '{"Lamp": "11", "Rug": "9"}',
    ]);
    const [before, after, ...rest] = first.stateHashes;
    expect(before).not.toBe(after);
    expect(rest).toEqual([after, after]);
    expect(before).toBe(await retail.openTools().hash());
    expect(await replayCalls(retail, calls, { signal })).toEqual(first);
  });

  test("returns null if the original's tool returns None", async () => {
    const call = {
      name: "send_certificate",
      argumentsText: '{"user_id": "cy_fox_3", "amount": NaN}',
    };
    const { observations } = await replayCalls(airline, [call, call, call, call], { signal });
    expect(observations[0]).toContain("with amount nan.");
    expect(observations[3]).toBeNull();
  });

  test("names the call with unreadable arguments", async () => {
    await expect(
      replayCalls(retail, [{ name: "think", argumentsText: "[]" }], { signal }),
    ).rejects.toThrow("Cannot read calls[0].argumentsText: expected a JSON object");
    await expect(
      replayCalls(retail, [{ name: "think", argumentsText: "{" }], { signal }),
    ).rejects.toThrow("Cannot read calls[0].argumentsText: Expecting property name");
  });

  test("stops at its signal", async () => {
    const aborted = AbortSignal.abort(new Error("enough"));
    await expect(replayCalls(retail, [{ name: "think" }], { signal: aborted })).rejects.toThrow(
      "enough",
    );
  });
});

describe("playActions()", () => {
  const cancel = {
    name: "cancel_pending_order",
    argumentsText: '{"order_id": "#W1", "reason": "no longer needed"}',
  };
  const goodbye = { name: "respond", argumentsText: '{"content": "Bye"}' };

  test("plays an episode to its reward", async () => {
    const played = await playActions(
      retail,
      {
        task: retail.task("test", 0),
        userReplies: ["Hi", "###STOP###"],
        actions: [cancel, goodbye],
      },
      { signal },
    );
    expect(played.resetObservation).toBe("Hi");
    expect(played.steps.map(({ reward, done, source }) => ({ reward, done, source }))).toEqual([
      { reward: 0, done: false, source: "cancel_pending_order" },
      { reward: 1, done: true, source: "user" },
    ]);
    expect(played).toMatchObject({ reward: 1, outcome: "completed", rewardInfo: { reward: 1 } });
  });

  test("reports `truncated` if the actions run out first", async () => {
    const played = await playActions(
      retail,
      { task: retail.task("test", 0), userReplies: ["Hi"], actions: [cancel] },
      { signal },
    );
    expect(played).toMatchObject({ reward: 0, outcome: "truncated", rewardInfo: null });
  });

  test("refuses actions after the end", async () => {
    await expect(
      playActions(
        retail,
        {
          task: retail.task("test", 0),
          userReplies: ["Hi", "###STOP###", "?"],
          actions: [goodbye, goodbye],
        },
        { signal },
      ),
    ).rejects.toThrow(
      "Cannot play actions[1]: the episode was done after actions[0], expected no action to follow",
    );
  });
});
