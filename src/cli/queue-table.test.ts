import { expect, test } from "vitest";
import { printQueue } from "./queue-table.ts";

test("shows the waiting jobs, their rate, and the reason for each wait", () => {
  const text = printQueue({
    atMs: 0,
    store: { memoryBytes: 3 * 2 ** 20, clients: 7 },
    runs: [
      {
        run: "r1",
        environment: "shop",
        host: "trainer",
        pid: 12,
        isHandedOut: true,
        waiting: 1_200,
        playing: 3,
        answered: 0,
        landed: 45,
        waitsFor: "places at workers",
      },
    ],
    workers: [
      {
        worker: "w1",
        host: "one",
        pid: 4,
        state: "working",
        concurrency: 8,
        playing: 3,
        played: 45,
        turnwright: "0.1.0",
        refuses: { r2: "tokenizer differs" },
        attemptRate: 0.51,
        turnRate: 5,
        tokenRate: 1_234.5,
        busy: 0.256,
        waitsFor: "model 90 %, user 0 %, tools 10 %",
      },
    ],
  });
  expect(text).toBe(
    [
      "store: 3.0 MiB, 7 connections · 1 runs · 1 workers",
      "",
      "run  environment  handed out by  waiting  playing  done  waits for",
      "r1   shop         trainer/12     1,200    3        45    places at workers",
      "",
      "worker  host  state    plays  done  attempts/s  turns/s  tokens/s  busy  waits for",
      "w1      one   working  3/8    45    0.5         5.0      1,235     26 %  model 90 %, user 0 %, tools 10 %",
      "",
      "w1 refuses r2: tokenizer differs",
      "",
    ].join("\n"),
  );
});
