import { expect, test } from "vitest";
import { createClock } from "../../async/clock.ts";
import { createManualClock } from "../../testing/manual-clock.ts";
import { AnswerOrder } from "./answer-order.ts";

test("an error at the hand-over of a result reaches only its caller", async () => {
  const order = new AnswerOrder(createClock(createManualClock()));
  const handed: string[] = [];
  const fails = order.turn({
    onTurn: () => {
      throw new TypeError("no answer can be kept");
    },
  });
  const next = order.turn({ onTurn: () => void handed.push("next") });
  await expect(fails).rejects.toThrow(new TypeError("no answer can be kept"));
  await next;
  await order.turn({ onTurn: () => void handed.push("after") });
  expect(handed).toEqual(["next", "after"]);
});

test("the same if all waiting results are handed over at once", async () => {
  const order = new AnswerOrder(createClock(createManualClock()));
  const handed: string[] = [];
  const fails = order.turn({
    onTurn: () => {
      throw new TypeError("no answer can be kept");
    },
  });
  const next = order.turn({ onTurn: () => void handed.push("next") });
  order.disable();
  await expect(fails).rejects.toThrow(new TypeError("no answer can be kept"));
  await next;
  expect(handed).toEqual(["next"]);
});
