import path from "node:path";
import type { ChatTurn } from "../../engine/chat/chat-turn.ts";
import { isChatTurn } from "../../episode/inputs/input.ts";
import { parseJson } from "../../run/folder/episode-row.ts";
import type { Files } from "../../run/disk/files.ts";
import type { LineRange } from "../../run/disk/line-ranges.ts";
import { recordingFile } from "../../run/recording/recording-line.ts";
import {
  readIds,
  readLogprobs,
  type WrittenGeneration,
} from "../../run/recording/written-generation.ts";
import type { TurnSpan } from "../../trajectory/segment.ts";
import type { LiveAnswer, LiveEntry, LiveEpisode } from "../model/live-episode.ts";
import type { RowColumns, VersionBand } from "../model/row-columns.ts";
import { kindIndex } from "../model/token-kind.ts";
import { LineFollower } from "./line-follower.ts";

const headLength = 4096;
const headPattern =
  /^\{"recording":1,"type":"(begin|inputs|end)","rolloutId":("(?:[^"\\]|\\.)*"),"attempt":(\d+)[,}]/;

/** The positions of an attempt's lines. */
interface RecordedPlace {
  readonly attempt: number;
  readonly ranges: LineRange[];
  hasEnded: boolean;
}

/** The members of an episode's input that the page shows. */
interface WrittenInput {
  readonly type: string;
  readonly what?: string;
  readonly isPartial?: true;
  readonly outcome?: {
    readonly value?: unknown;
    readonly error?: { readonly message?: string };
    readonly hash?: string;
  };
}

/**
 * The recordings of running episodes. `recording.jsonl` gets each turn when it is sampled. A run
 * without a recording has none.
 */
export class LiveRecordings {
  readonly #follower: LineFollower;
  readonly #places = new Map<string, RecordedPlace>();

  constructor(dir: string, files: Files) {
    this.#follower = new LineFollower(path.join(dir, recordingFile), {
      files,
      headLength,
      onLine: ({ head, start, end }) => this.#add(head, { start, end }),
      onReset: () => this.#places.clear(),
    });
  }

  async read(): Promise<void> {
    await this.#follower.read();
  }

  /** The attempts that have started and not ended. */
  get entries(): readonly LiveEntry[] {
    return [...this.#places]
      .filter(([, { hasEnded }]) => !hasEnded)
      .map(([rolloutId, { attempt, ranges }]) => {
        return { rolloutId, attempt, partCount: ranges.length };
      });
  }

  /** Returns a running episode's conversation, or `undefined` if no running episode has the id. */
  async episode(rolloutId: string): Promise<LiveEpisode | undefined> {
    const entry = this.entries.find((live) => live.rolloutId === rolloutId);
    if (entry === undefined) return undefined;
    const answers: LiveAnswer[] = [];
    let turnCount = 0;
    for (const { type, what = type, outcome, isPartial } of await this.#inputsOf(rolloutId)) {
      if (type === "generation") {
        if (isPartial !== true && outcome?.value !== undefined) turnCount++;
        continue;
      }
      const { value, error } = outcome ?? {};
      if (isChatTurn({ type, what }) && value !== undefined) {
        answers.push({
          turnIndex: turnCount++,
          what: "the model's message",
          isError: false,
          text: textOfTurn(value as Partial<ChatTurn>),
        });
        continue;
      }
      const text = error?.message ?? (value === undefined ? undefined : textOf(value));
      answers.push({
        turnIndex: turnCount - 1,
        what,
        isError: error !== undefined,
        ...(text !== undefined && { text }),
      });
    }
    return { isLive: true, ...entry, turnCount, answers };
  }

  /**
   * Returns the sampled ids of a running episode as a row, turn by turn. The recording has no ids
   * of the prompt and the environment.
   */
  async columns(rolloutId: string): Promise<RowColumns | undefined> {
    if (!this.entries.some((live) => live.rolloutId === rolloutId)) return undefined;
    const ids: number[] = [];
    const logprobs: number[] = [];
    const turns: TurnSpan[] = [];
    const versions: VersionBand[] = [];
    let start = 0;
    for (const { type, outcome, isPartial } of await this.#inputsOf(rolloutId)) {
      const generation = outcome?.value as Partial<WrittenGeneration> | undefined;
      if (type !== "generation" || typeof generation?.ids !== "string") continue;
      let place = ids.length;
      for (const id of readIds(generation.ids)) ids.push(id);
      for (const logprob of readLogprobs(generation)) logprobs.push(logprob);
      for (const { tokenCount, policyVersion } of generation.pieces ?? []) {
        versions.push({ start: place, end: place + tokenCount, version: policyVersion });
        place += tokenCount;
      }
      if (isPartial === true) continue;
      const finish = generation.finish?.type ?? "stop";
      const about = { turnIndex: turns.length, finish, promptHash: "", outputHash: "" };
      turns.push({ ...about, start, end: ids.length });
      start = ids.length;
    }
    return {
      header: {
        rolloutId,
        groupId: "",
        segment: 0,
        tokenCount: ids.length,
        promptLength: 0,
        turns,
        versions,
        outcome: "completed",
        stopReason: "finished",
        metadata: {},
        isLive: true,
      },
      ids: Int32Array.from(ids),
      logprobs: Float64Array.from(logprobs),
      kinds: new Uint8Array(ids.length).fill(kindIndex.sampled),
      mask: new Uint8Array(ids.length).fill(1),
    };
  }

  async #inputsOf(rolloutId: string): Promise<readonly WrittenInput[]> {
    const inputs: WrittenInput[] = [];
    for (const range of this.#places.get(rolloutId)?.ranges ?? []) {
      const line = parseJson(await this.#follower.lineAt(range)) as
        | { readonly inputs?: readonly WrittenInput[] }
        | null
        | undefined;
      inputs.push(...(line?.inputs ?? []));
    }
    return inputs;
  }

  #add(head: Buffer, range: LineRange): void {
    const match = headPattern.exec(head.toString("utf8"));
    const rolloutId = match === null ? undefined : parseJson(Buffer.from(match[2]!));
    if (match === null || typeof rolloutId !== "string") return;
    const attempt = Number(match[3]);
    const known = this.#places.get(rolloutId);
    if (known !== undefined && known.attempt > attempt) return;
    const place = known?.attempt === attempt ? known : { attempt, ranges: [], hasEnded: false };
    this.#places.set(rolloutId, place);
    if (match[1] === "inputs") place.ranges.push(range);
    // An attempt that continues after an interruption starts once more.
    place.hasEnded = match[1] === "end";
  }
}

/** Returns the text of a turn that an engine returned as a message, and its calls. */
function textOfTurn({ content = "", toolCalls = [] }: Partial<ChatTurn>): string {
  const calls = toolCalls.map(({ name = "", argumentsText }) => `${name} ${argumentsText}`);
  return [content, ...calls].filter((part) => part !== "").join("\n");
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
