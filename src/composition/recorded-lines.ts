import path from "node:path";
import { type FileMark, holdsMark, markEnd } from "../run/disk/file-mark.ts";
import { diskFiles, type Files, withFile } from "../run/disk/files.ts";
import {
  indexRecordings,
  readRecordingLines,
  type RecordingIndex,
} from "../run/recording/read-recording.ts";
import { episodesFile, samplesFile } from "../run/folder/scan-claims.ts";
import { recordingFile } from "../run/recording/recording-line.ts";
import { indexRows, type RowIndex } from "../run/folder/row-index.ts";

/** What the files of a run's folder say of one rollout: their lines, each in the order of its file. */
export interface RecordedLines {
  /** Of its latest attempt. */
  readonly recording: readonly Buffer[];
  /** The last one counts. */
  readonly episodes: readonly Buffer[];
  readonly samples: readonly Buffer[];
}

/** The recorded rollouts of a folder, in which somebody may go on playing. */
interface RecordedLinesIndex {
  /** In the order in which they were begun. */
  readonly rolloutIds: readonly string[];
  /** Finished ones of which nothing is recorded. */
  readonly unrecordedIds: readonly string[];
  /** Where there is a line of its episode, the others are all that there are of it. */
  read(rolloutId: string): Promise<RecordedLines>;
}

/** A file as it was before it was gone through. */
interface MarkedFile {
  readonly path: string;
  /** `undefined` where there was none. */
  readonly mark: FileMark | undefined;
}

/** Where the lines are. */
interface Places {
  /** What it was found out of; another file may be put in the place of each, and lines may be cut off. */
  readonly marks: readonly MarkedFile[];
  readonly episodes: RowIndex;
  readonly samples: RowIndex;
  readonly recordings: RecordingIndex;
}

/**
 * Finds the lines of a folder's rollouts.
 *
 * @throws UsageError where the disk refuses the recording, else the system's own error.
 */
export async function indexRecordedLines(
  dir: string,
  files: Files = diskFiles,
): Promise<RecordedLinesIndex> {
  let places = await findLines(dir, files);
  return {
    rolloutIds: [...places.recordings.keys()],
    unrecordedIds: places.episodes.rolloutIds.filter((id) => !places.recordings.has(id)),
    async read(rolloutId) {
      for (;;) {
        const { episodes, samples, recordings } = places;
        const ranges = recordings.get(rolloutId)?.ranges ?? [];
        const lines = {
          episodes: await episodes.read(rolloutId),
          samples: await samples.read(rolloutId),
          recording: await readRecordingLines(dir, { files, ranges }),
        };
        // Rows are put in their order when a run ends, and taken out when it is begun again: at these places
        // there are others then.
        if (await areSame(places.marks, files)) return lines;
        places = await findLines(dir, files);
      }
    },
  };
}

/** In the opposite order of the writing: of an episode whose line is found, all that it builds on is. */
async function findLines(dir: string, files: Files): Promise<Places> {
  const marks = await markAll(dir, files);
  const episodes = await indexRows(files, path.join(dir, episodesFile));
  const samples = await indexRows(files, path.join(dir, samplesFile));
  const recordings = await indexRecordings(dir, { files, wants: () => true });
  return { marks, episodes, samples, recordings };
}

async function markAll(dir: string, files: Files): Promise<readonly MarkedFile[]> {
  const paths = [episodesFile, samplesFile, recordingFile].map((name) => path.join(dir, name));
  return await Promise.all(
    paths.map(async (file) => ({ path: file, mark: await withFile(files, file, markEnd) })),
  );
}

async function areSame(marked: readonly MarkedFile[], files: Files): Promise<boolean> {
  for (const { path: file, mark } of marked) {
    const isSame = await withFile(
      files,
      file,
      async (open) => mark !== undefined && (await holdsMark(open, mark)),
    );
    if (!(isSame ?? mark === undefined)) return false;
  }
  return true;
}
