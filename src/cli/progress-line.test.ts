import { describe, expect, test } from "vitest";
import { RunTally } from "../run/run-progress.ts";
import { createProgressLine, describeNews, describeProgress } from "./progress-line.ts";

function progressOf(planned?: number) {
  const tally = new RunTally({ ...(planned !== undefined && { planned }), now: () => 0 });
  return tally.progress();
}

const played = {
  finished: 30,
  resumed: 10,
  running: 4,
  rewardMean: 0.5,
  sampledTokensPerSecond: 1234.5,
  elapsedMs: 60_000,
  spentMs: { engine: 800, user: 150, environment: 50 },
};

describe("describeProgress()", () => {
  test("shows the remaining work and the time spent in each part", () => {
    expect(describeProgress({ ...progressOf(90), ...played }, 0.123)).toBe(
      "30/90 done · 4 running · reward 0.500 · 1,235 tok/s · about 3 min left · " +
        "waits: model 80 %, user 15 %, tools 5 %; we are busy 12 %",
    );
  });

  test.each([
    [{ finished: 14, resumed: 10, running: 4 }, false],
    [{ finished: 15, resumed: 10, running: 4 }, true],
    [{ finished: 15, resumed: 0, running: 16 }, false],
    [{ finished: 16, resumed: 0, running: 16 }, true],
  ])("estimates the remaining time of %j: %s", (counts, isEstimated) => {
    const text = describeProgress({ ...progressOf(90), ...played, ...counts });
    expect(text.includes(" left")).toBe(isEstimated);
  });

  test("says of a run without end how far it is", () => {
    expect(describeProgress({ ...progressOf(), ...played })).toBe(
      "30 done · 4 running · reward 0.500 · 1,235 tok/s · waits: model 80 %, user 15 %, tools 5 %",
    );
    expect(describeProgress(progressOf(2))).toBe("0/2 done · 0 running · reward – · 0 tok/s");
  });
});

describe("createProgressLine()", () => {
  test("writes news on lines of their own", () => {
    const news = describeNews({ type: "engine-unreachable", silentMs: 14_600 });
    expect(news).toBe("engine unreachable for 15 s, retrying");
    const written = [true, false].map((isTTY) => {
      let text = "";
      const write = (more: string) => (text += more);
      const line = createProgressLine({ stream: { isTTY, columns: 80 }, write, now: () => 0 });
      line.update(progressOf(2));
      line.say(news);
      return text;
    });
    const state = "0/2 done · 0 running · reward – · 0 tok/s";
    expect(written).toEqual([
      `\r\u001b[2K${state}\r\u001b[2K${news}\n\r\u001b[2K${state}`,
      `${state}\n${news}\n`,
    ]);
  });
});
