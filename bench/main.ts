import type { BenchFigure } from "./bench-figure.ts";

/** The figures, as an array or as a stream. */
type Figures = readonly BenchFigure[] | AsyncGenerator<BenchFigure>;

/** The benchmarks by their `--only` names. Each is loaded when it runs. */
const benches: Readonly<Record<string, () => Promise<Figures>>> = {
  "turn-cost": async () => (await import("./turn-cost.ts")).benchTurnCost(),
  "live-episodes": async () => (await import("./live-episodes.ts")).benchLiveEpisodes(base),
  "start-up": async () => (await import("./start-up/bench-start-up.ts")).benchStartUp(base),
  environment: async () => (await import("./environment.ts")).benchEnvironment(),
  "define-environment": async () =>
    (await import("./define-environment.ts")).benchDefineEnvironment(),
  "long-attempts": async () =>
    (await import("./long-attempts/bench-long-attempts.ts")).benchLongAttempts(base),
  "many-long-attempts": async () =>
    (await import("./long-attempts/bench-long-attempts.ts")).benchManyLongAttempts(base),
  "live-columns": async () =>
    (await import("./live-columns/bench-live-columns.ts")).benchLiveColumns(),
  disk: async () => (await import("./long-attempts/bench-disk.ts")).benchDisk(base),
  resume: async () => (await import("./long-attempts/bench-resume.ts")).benchResume(base),
  tokenizer: async () => (await import("./tokenizer.ts")).benchTokenizer(base),
  columns: async () => (await import("./columns/bench-columns.ts")).benchColumns(),
  "python-calls": async () =>
    (await import("./python-calls/bench-python-calls.ts")).benchPythonCalls(),
  parse: async () => (await import("./parse.ts")).benchParse(),
  journal: async () => (await import("./journal.ts")).benchJournal(),
  recording: async () => (await import("./recording.ts")).benchRecording(),
  seed: async () => (await import("./seed.ts")).benchSeed(),
  "reference-engine": async () => (await import("./reference-engine.ts")).benchReferenceEngine(),
  gateway: async () => (await import("./gateway.ts")).benchGateway(),
  "gateway-turns": async () =>
    (await import("./gateway-turns/bench-gateway-turns.ts")).benchGatewayTurns(base),
  service: async () => (await import("./service.ts")).benchService(),
  "long-rows": async () => (await import("./long-rows.ts")).benchLongRows(),
  "many-episodes": async () => (await import("./many-episodes.ts")).benchManyEpisodes(),
  "light-load": async () => (await import("./light-load.ts")).benchLightLoad(),
  queue: async () => (await import("./queue/bench-queue.ts")).benchQueue(),
  "hand-out": async () => (await import("./hand-out/bench-hand-out.ts")).benchHandOut(),
  "interval-coverage": async () => (await import("./interval-coverage.ts")).benchIntervalCoverage(),
  viewer: async () => (await import("./viewer.ts")).benchViewer(),
};

const flags = process.argv.slice(2);
const isJson = flags.includes("--json");
/** The folder of an older build, for the benchmarks that compare with it. */
const base = flags.includes("--base") ? flags[flags.indexOf("--base") + 1] : undefined;
const only = flags.includes("--only") ? flags[flags.indexOf("--only") + 1] : undefined;

if (flags.includes("--help")) {
  process.stdout.write(
    `Usage: npm run bench -- [--json] [--only NAME] [--base DIR]\n\nNames: ${Object.keys(benches).join(", ")}\n`,
  );
} else if (only !== undefined && !(only in benches)) {
  process.stderr.write(
    `turnwright bench: no benchmark "${only}", expected one of ${Object.keys(benches).join(", ")}\n`,
  );
  process.exitCode = 2;
} else {
  for (const [name, run] of Object.entries(benches)) {
    if (only !== undefined && only !== name) continue;
    for await (const figure of await run()) print(figure);
  }
}

function print(figure: BenchFigure): void {
  process.stdout.write(`${isJson ? JSON.stringify(figure) : describe(figure)}\n`);
}

function describe({ bench, figure, value, unit, baseline, ratio, at }: BenchFigure): string {
  const place = at === undefined ? "" : ` [${at}]`;
  const against =
    baseline === undefined || ratio === undefined
      ? ""
      : `, baseline ${short(baseline)} ${unit}, ${short(ratio)} times better`;
  return `${bench}${place}: ${figure}: ${short(value)} ${unit}${against}`;
}

function short(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
}
