import { defineLazy } from "../../values/define-lazy.ts";
import { once } from "../../values/once.ts";
import type { Episode, EpisodeStory } from "../../episode/episode.ts";
import { restoreStory } from "../../episode/stored-story.ts";
import type { Sample } from "../../trajectory/sample.ts";
import type { Segment } from "../../trajectory/segment.ts";
import { InvariantError } from "../../errors.ts";
import type { EncodedLine } from "../disk/encode-line.ts";
import { packedBytes } from "./packed-bytes.ts";
import { attachPacked, type PackedEpisode } from "./packed-episode.ts";
import { lazyMembers, type PackedHead } from "./packed-head.ts";

const lineFeed = "\n".charCodeAt(0);

/**
 * Returns an episode with its lines attached. Its long members are parsed when they are first read.
 * @param body - The lines after the head.
 * @returns the episode, or a description of the fault if the sizes in the head are wrong.
 */
export function unpackEpisode(
  head: PackedHead,
  body: Buffer,
): { readonly episode: Episode } | { readonly fault: string } {
  let end = 0;
  const cut = (bytes: number): Buffer => body.subarray(end, (end += bytes));
  const samples = head.samples.map(({ bytes, hash }) => toLine(cut(bytes), hash));
  const line = toLine(cut(head.line.bytes), head.line.hash);
  const spans = cut(head.spansBytes);
  const recording = { ...head.recording, bytes: cut(head.recording.bytes) };
  if (end !== body.length) return { fault: `its lines have ${body.length} bytes, not ${end}` };
  const parts = [...samples, line].flatMap(({ blocks }) => blocks);
  if (![...parts, spans, recording.bytes].every(endsLine)) return { fault: "a line has no end" };
  const { columns, versions, turns, troubles } = head;
  let isReleased = false;
  const requireLines = (): void => {
    if (isReleased) throw new InvariantError(`the lines of ${head.story.rolloutId} were released`);
  };
  const episode = openEpisode(head.story, {
    story: () => {
      requireLines();
      return restoreStory(parse(line.blocks[0]!)) as EpisodeStory;
    },
    segments: () => {
      requireLines();
      const rows = samples.map(({ blocks }) => parse(blocks[0]!) as Sample);
      const ofRows = parse(spans) as readonly Segment["spans"][];
      return rows.map((row, index) => toSegment(row, ofRows[index]!));
    },
  });
  const packed = {
    samples,
    line,
    recording,
    versions,
    turns,
    troubles,
    ...(columns !== undefined && { columns }),
    release: () => {
      isReleased = true;
      packedBytes.release(body);
    },
  };
  attachPacked(episode, packed as PackedEpisode);
  return { episode };
}

function toLine(bytes: Buffer, hash: string): EncodedLine {
  return { blocks: [bytes], hash };
}

function endsLine(bytes: Uint8Array): boolean {
  return bytes.length === 0 || bytes.at(-1) === lineFeed;
}

function parse(line: Uint8Array): unknown {
  return JSON.parse(Buffer.from(line.buffer, line.byteOffset, line.length).toString("utf8"));
}

/** Makes an object with all members of an episode, in their order. */
function openEpisode(
  light: PackedHead["story"],
  read: { readonly story: () => EpisodeStory; readonly segments: () => readonly Segment[] },
): Episode {
  const lazy: ReadonlySet<string> = new Set(lazyMembers);
  const story = once(read.story);
  const episode: object = {};
  for (const [name, value] of Object.entries(light)) {
    if (lazy.has(name)) defineLazy(episode, name, () => story()[name as keyof EpisodeStory]);
    else Object.assign(episode, { [name]: value });
  }
  defineLazy(episode, "segments", read.segments);
  return episode as Episode;
}

function toSegment(sample: Sample, spans: Segment["spans"]): Segment {
  const { tokenIds, promptLength, lossMask, logprobs, policyVersions, turns, columns } = sample;
  return {
    tokenIds,
    promptLength,
    spans,
    lossMask,
    logprobs,
    policyVersions,
    turns,
    ...(columns !== undefined && { columns }),
  };
}
