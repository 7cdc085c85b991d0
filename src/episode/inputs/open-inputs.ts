import { systemClock, type Clock } from "../../async/clock.ts";
import { noRedactor, type Redactor } from "../../secrets/redactor.ts";
import { AnswerOrder } from "./answer-order.ts";
import { CallState, type UserRequest } from "./call-state.ts";
import { EpisodeTime } from "./episode-time.ts";
import { endOf, type Inputs } from "./input.ts";
import { InputRecorder } from "./input-recorder.ts";
import type { InputSource } from "./input-source.ts";
import { LiveInputs } from "./live-inputs.ts";
import { OutsideCalls } from "./outside-calls.ts";
import { RecordedInputs } from "./recorded-inputs.ts";

/** The source of an episode's inputs, and their recording. */
export interface InputOptions {
  /** A recording of the episode's first inputs. Default: the episode is live from the start. */
  readonly past?: Inputs;
  /**
   * The behaviour at the end of `past`: with `live` the episode continues live, with `replay` a `RecordingEnd` is
   * thrown. Default `live`.
   */
  readonly atEnd?: "live" | "replay";
  /** True to have the world score the episode again instead of using the recorded score. Default false. */
  readonly scoreAnew?: boolean;
  /**
   * Removes secrets from inputs before the episode sees them. The recording has no secrets then, and a replay sees the
   * same inputs. Token ids and logprobs stay as they are. Default: no secrets are known.
   */
  readonly redactor?: Pick<Redactor, "thrown" | "without">;
  /** Called with new inputs, several at a time. Default: inputs are not recorded. */
  readonly onInputs?: (inputs: Inputs) => void;
}

/** An episode's inputs, and the parts that control them. */
export interface EpisodeInputs {
  readonly inputs: InputSource;
  /** The `outside` functions of the world and the user. */
  readonly outside: OutsideCalls;
  /** The call to the user or the world that is under way. */
  readonly calls: CallState;
  readonly episodeTime: EpisodeTime;
  /** The recording that the episode is played from. `undefined` if it is live from the start. */
  readonly playback: RecordedInputs | undefined;
  /** The recorder of the inputs. `undefined` if they are not recorded. */
  readonly inputRecorder: InputRecorder | undefined;
  readonly redactor: Pick<Redactor, "thrown" | "without">;
}

/**
 * Sets up an episode's inputs: recorded until the recording's end, then live and recorded.
 *
 * @param around - `now` returns milliseconds since the epoch. `userRequest` returns the line that the world currently
 *   requests from the user. `onLive` is called once, when the episode continues live after its recording.
 */
export function openInputs(
  { past, atEnd = "live", scoreAnew = false, redactor = noRedactor, onInputs }: InputOptions,
  around: {
    readonly now: () => number;
    readonly clock?: Pick<Clock, "after">;
    readonly userRequest: () => UserRequest | undefined;
    readonly onLive: () => void;
  },
): EpisodeInputs {
  const { now, onLive, clock = systemClock } = around;
  const isReplay = atEnd === "replay";
  const calls = new CallState(around.userRequest);
  const order = new AnswerOrder(clock);
  // An episode without a recording is never played again, so its calls may end in any order.
  if (past === undefined && onInputs === undefined) order.disable();
  const recording = past ?? (isReplay ? { inputs: [], times: [] } : undefined);
  const episodeTime = new EpisodeTime({
    now,
    hasRecording: recording !== undefined,
    recordedEndMs: recording && endOf(recording),
    onLive,
  });
  const shared = { time: episodeTime, calls, order, redactor };
  const live = new LiveInputs(shared);
  const isRecorded = onInputs !== undefined && !isReplay;
  const inputRecorder = isRecorded ? new InputRecorder(live, { ...shared, onInputs }) : undefined;
  const next = inputRecorder ?? live;
  const playback =
    recording &&
    new RecordedInputs({ ...shared, recording, next, isReplay, isRescored: scoreAnew });
  const inputs = playback ?? next;
  const isPlaying = (): boolean => playback?.isPlaying === true;
  const outside = new OutsideCalls({ source: inputs, state: calls, order, redactor, isPlaying });
  return { inputs, outside, calls, episodeTime, playback, inputRecorder, redactor };
}
