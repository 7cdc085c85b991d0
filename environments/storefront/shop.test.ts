import { expect, test } from "vitest";
import { drawTask } from "./draw-task.ts";
import { fulfil } from "./goal.ts";
import { isSameState, openShop, shopState } from "./shop.ts";

test("two shops of a task are in the same state exactly if their texts are equal", () => {
  let changedCount = 0;
  for (let index = 0; index < 200; index++) {
    const { records, goals } = drawTask("train", index);
    const untouched = openShop(records);
    const fulfilled = openShop(records);
    fulfil(fulfilled, goals);
    const changed = shopState(untouched) !== shopState(fulfilled);
    if (changed) changedCount += 1;
    expect(isSameState(untouched, fulfilled)).toBe(!changed);
    expect(isSameState(fulfilled, untouched)).toBe(!changed);
    const again = openShop(records);
    fulfil(again, goals);
    expect(isSameState(again, fulfilled)).toBe(true);
  }
  expect(changedCount).toBeGreaterThan(50);
});

test("an order that was written back unchanged is not a difference", () => {
  const { records } = drawTask("train", 0);
  const [left, right] = [openShop(records), openShop(records)];
  for (const { id } of records.orders) left.orders.own(id);
  expect(isSameState(left, right)).toBe(true);
});
