import path from "node:path";
import { diskFiles, type Files } from "../run/files.ts";
import { indexRecordings, readRecordingLines, type RecordingIndex } from "../run/read-recording.ts";
import { episodesFile, samplesFile } from "../run/reconcile.ts";
import { recordingFile } from "../run/recording-line.ts";
import { indexRows, type RowIndex } from "../run/row-index.ts";

/** What the files of a run's folder say of one rollout: their lines, each in the order of its file. */
export interface RecordedLines {
  /** Of its latest attempt. */
  readonly recording: readonly Buffer[];
  /** The last one counts. */
  readonly episodes: readonly Buffer[];
  readonly samples: readonly Buffer[];
}

/** The recorded rollouts of a folder, in which somebody may go on playing. */
export interface RecordedLinesIndex {
  /** In the order in which they were begun. */
  readonly rolloutIds: readonly string[];
  /** Where there is a line of its episode, the others are all that there are of it. */
  read(rolloutId: string): Promise<RecordedLines>;
}

/** Where the lines are. */
interface Places {
  /** Which files it was found out of; another one may be put in the place of each. */
  readonly identities: string;
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
  const isReplaced = async () => (await identify(dir, files)) !== places.identities;
  return {
    rolloutIds: [...places.recordings.keys()],
    async read(rolloutId) {
      for (;;) {
        const { episodes, samples, recordings } = places;
        const ranges = recordings.get(rolloutId)?.ranges ?? [];
        const lines = {
          episodes: await episodes.read(rolloutId),
          samples: await samples.read(rolloutId),
          recording: await readRecordingLines(dir, { files, ranges }),
        };
        // Rows are put in their order when a run ends: at these places there are others then.
        if (!(await isReplaced())) return lines;
        places = await findLines(dir, files);
      }
    },
  };
}

/** In the opposite order of the writing: of an episode whose line is found, all that it builds on is. */
async function findLines(dir: string, files: Files): Promise<Places> {
  const identities = await identify(dir, files);
  const episodes = await indexRows(files, path.join(dir, episodesFile));
  const samples = await indexRows(files, path.join(dir, samplesFile));
  const recordings = await indexRecordings(dir, { files, wants: () => true });
  return { identities, episodes, samples, recordings };
}

async function identify(dir: string, files: Files): Promise<string> {
  const names = [episodesFile, samplesFile, recordingFile];
  const found = await Promise.all(
    names.map(async (name) => await files.facts(path.join(dir, name))),
  );
  return found.map((facts) => facts?.identity ?? "none").join(" ");
}
