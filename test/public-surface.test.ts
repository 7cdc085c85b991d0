import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../", import.meta.url));

interface Entry {
  readonly values: readonly string[];
  readonly types: readonly string[];
}

/** Reads the names that an `index.ts` re-exports. */
async function readEntry(file: string): Promise<Entry> {
  const source = await readFile(file, "utf8");
  const values: string[] = [];
  const types: string[] = [];
  for (const [, isTypeOnly, list] of source.matchAll(/export (type )?\{([^}]*)\} from/g)) {
    for (const item of list!.split(",")) {
      const name = item.trim().replace(/^type /, "");
      if (name === "") continue;
      const isType = isTypeOnly !== undefined || item.trim().startsWith("type ");
      (isType ? types : values).push(name);
    }
  }
  return { values: values.toSorted(), types: types.toSorted() };
}

/** Reads every entry of the package, by its import specifier. */
async function readEntries(): Promise<ReadonlyMap<string, Entry>> {
  const { exports } = JSON.parse(await readFile(path.join(root, "package.json"), "utf8")) as {
    readonly exports: Readonly<Record<string, { readonly default?: string }>>;
  };
  const entries = new Map<string, Entry>();
  for (const [specifier, { default: built }] of Object.entries(exports)) {
    if (built === undefined || specifier.includes("*")) continue;
    const source = built.replace(/^\.\/dist\/(.*)\.js$/, "$1.ts");
    const name = path.posix.join("turnwright", specifier);
    entries.set(name, await readEntry(path.join(root, source)));
  }
  return entries;
}

const entries = await readEntries();

/** The values of each entry. A change to this list is a change of the public interface. */
const surface: Readonly<Record<string, readonly string[]>> = {
  turnwright: [
    "InvariantError",
    "RolloutError",
    "ToolRefusal",
    "UsageError",
    "advantages",
    "checkEnvironment",
    "createCurriculum",
    "createEndlessTasks",
    "createPushedTasks",
    "createScriptedUser",
    "createSeededRandom",
    "createSpreadFilter",
    "createTaskList",
    "createTaskStream",
    "defineEnvironment",
    "defineTool",
    "evaluate",
    "playActions",
    "readRun",
    "readTasks",
    "refuse",
    "rewardsOf",
    "rollout",
    "turnAdvantages",
    "verifyRun",
    "verifySample",
  ],
  "turnwright/agent": [
    "createChatToolAgent",
    "createFewShotAgent",
    "createTextActionAgent",
    "createToolCallingAgent",
    "ownTextActionPrompts",
    "readFewShotExamples",
    "readTextActionPrompts",
    "refusableNotes",
    "repairableStatuses",
    "toolUsePolicies",
  ],
  "turnwright/columns": ["columnNames", "decodeRagged"],
  "turnwright/composition": ["createReplay", "createRun", "openRecordedRun", "readRunConfig"],
  "turnwright/doctor": [
    "TrainerRows",
    "createKindReader",
    "defaultThresholds",
    "diagnose",
    "diagnoseRun",
    "diagnosisPlot",
    "diagnosisText",
    "readTrainerFile",
  ],
  "turnwright/engine": [
    "createChatEngine",
    "createLlamaCppEngine",
    "createLlamaEngine",
    "createReferenceEngine",
    "createSglangEngine",
    "createVllmEngine",
    "requireColumns",
  ],
  "turnwright/environment": [
    "CopyOnWriteTable",
    "PlaybackStop",
    "callThrough",
    "replayCalls",
    "toolFromOpenAi",
    "toolsFromOpenAi",
  ],
  "turnwright/episode": [
    "RecordingEnd",
    "ReplayDivergence",
    "defaultLimits",
    "inputsBefore",
    "playEpisode",
    "rowLineageOf",
  ],
  "turnwright/export": ["exportGroup", "exportRun"],
  "turnwright/gateway": [
    "createCommandAgent",
    "createForeignPlayer",
    "createGateway",
    "inProcessUrl",
  ],
  "turnwright/metrics": ["startMetricsServer"],
  "turnwright/parser": [
    "chooseParser",
    "findReasoningParser",
    "findToolCallParser",
    "listReasoningParsers",
    "listToolCallParsers",
  ],
  "turnwright/python": ["parsePythonJson", "stringifyPythonJson", "toPlainJson", "toPyValue"],
  "turnwright/renderer": ["createRenderer"],
  "turnwright/run": [
    "RunFolder",
    "createAdmissionGate",
    "createPlanSource",
    "openColumnFolder",
    "packRun",
    "planRun",
    "playHere",
    "replayEpisode",
    "startRun",
    "toSlimeGroup",
    "traceSetup",
    "unpackRun",
  ],
  "turnwright/testing": [
    "characterIds",
    "characterStopId",
    "createCharacterRenderer",
    "createDeferred",
    "createEchoPolicy",
    "createManualClock",
    "createScriptedEngine",
    "createScriptedPolicy",
    "createSeededPolicy",
    "createTextPolicy",
    "malformTurn",
    "registerEngineConformance",
    "registerScoringConformance",
    "spawnTestServer",
    "startLlamaCppTestServer",
    "startSglangTestRouter",
    "startSglangTestServer",
    "startVllmTestServer",
  ],
  "turnwright/tokenizer": ["IncrementalDecoder", "findModelFolder", "loadTokenCodec"],
  "turnwright/trajectory": ["TokenLedger", "rescoreFile", "toSamples", "verifyFile"],
  "turnwright/user": ["STOP_MARKER", "createUser", "isLeaving", "noSpending", "textOfLine"],
  "turnwright/verify": ["verifyExport"],
  "turnwright/viewer": ["startRunViewer"],
  "turnwright/worlds": [
    "createDockerSandboxes",
    "createLocalSandboxes",
    "createMcpTools",
    "createOpenEnv",
    "createPythonEnvironment",
    "defineSandboxes",
    "readSandboxFile",
    "serveOpenEnv",
    "writeSandboxFile",
  ],
};

test("each entry exports these values", () => {
  const found = Array.from(entries, ([name, { values }]) => [name, values] as const);
  expect(Object.fromEntries(found)).toEqual(surface);
});

test("the root exports at most 60 values", () => {
  expect(entries.get("turnwright")!.values.length).toBeLessThanOrEqual(60);
});

test("each name is exported by one entry", () => {
  const owners = new Map<string, string[]>();
  for (const [entry, { values, types }] of entries) {
    for (const name of [...values, ...types]) {
      owners.set(name, [...(owners.get(name) ?? []), entry]);
    }
  }
  expect(Array.from(owners).filter(([, found]) => found.length > 1)).toEqual([]);
});

test("every folder with an index is an entry", async () => {
  const folders = await readdir(path.join(root, "src"), { withFileTypes: true });
  const indexed: string[] = [];
  for (const { name } of folders.filter((entry) => entry.isDirectory())) {
    const files = await readdir(path.join(root, "src", name));
    if (files.includes("index.ts")) indexed.push(`turnwright/${name}`);
  }
  expect(indexed.toSorted()).toEqual(
    [...entries.keys()].filter((name) => name.includes("/")).toSorted(),
  );
});
