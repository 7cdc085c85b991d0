import path from "node:path";
import { type FileMark, holdsMark, markEnd } from "../run/disk/file-mark.ts";
import { type Files, withFile } from "../run/disk/files.ts";
import { storedFiles } from "../run/gzip/stored-files.ts";
import {
  indexRecordings,
  readRecordingLines,
  type RecordingIndex,
} from "../run/recording/read-recording.ts";
import { episodesFile, samplesFile } from "../run/folder/scan-claims.ts";
import { recordingFile } from "../run/recording/recording-line.ts";
import { indexRows, type RowIndex } from "../run/folder/row-index.ts";

/** The lines of one rollout in a run's files, each list in the order of its file. */
export interface RecordedLines {
  /** The lines of the rollout's latest attempt. */
  readonly recording: readonly Buffer[];
  /** The lines of its episode. The last line counts. */
  readonly episodes: readonly Buffer[];
  readonly samples: readonly Buffer[];
}

/** An index of the recorded rollouts in a folder. A process may still write to the folder. */
interface RecordedLinesIndex {
  /** The rollout ids in the order in which they started. */
  readonly rolloutIds: readonly string[];
  /** Finished rollouts without a recording. */
  readonly unrecordedIds: readonly string[];
  /** Reads a rollout's lines. If its episode's line exists, the other lines are complete. */
  read(rolloutId: string): Promise<RecordedLines>;
}

/** A file, with a mark of its content before it was indexed. */
interface MarkedFile {
  readonly path: string;
  /** The mark of the content. `undefined` if the file did not exist. */
  readonly mark: FileMark | undefined;
}

/** The positions of the lines of all rollouts. */
interface Places {
  /** The files from which the places were read. A file may be replaced or cut later. */
  readonly marks: readonly MarkedFile[];
  readonly episodes: RowIndex;
  readonly samples: RowIndex;
  readonly recordings: RecordingIndex;
}

/**
 * Finds the places of all rollouts' lines in a run's folder.
 * @throws UsageError if the recording cannot be read, and the system's own error for the other files.
 */
export async function indexRecordedLines(
  dir: string,
  files: Files = storedFiles,
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
        // Rows are sorted when a run ends, and unsorted when it starts again, so the places may
        // have changed.
        if (await areSame(places.marks, files)) return lines;
        places = await findLines(dir, files);
      }
    },
  };
}

/**
 * Reads the files in the opposite order of writing, so that an episode's line is found only with
 * the lines that it depends on.
 */
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
