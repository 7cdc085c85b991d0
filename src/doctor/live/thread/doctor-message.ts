import type { AddedRows, LiveDiagnoseOptions, LiveDiagnosis } from "../live-doctor.ts";

/** A message to the doctor's thread. `key` is unique among pending calls. */
export type DoctorRequest =
  /** Bytes of a post, in order. */
  | { readonly type: "bytes"; readonly key: number; readonly bytes: Uint8Array }
  /** The end of a post. */
  | { readonly type: "add"; readonly key: number }
  /** Forgets the bytes of a post that broke off. */
  | { readonly type: "drop"; readonly key: number }
  | { readonly type: "diagnose"; readonly key: number; readonly options: LiveDiagnoseOptions };

/** The reply to a call. */
export type DoctorReply =
  | { readonly type: "done"; readonly key: number; readonly result: AddedRows | LiveDiagnosis }
  /** The post is wrong. */
  | { readonly type: "refused"; readonly key: number; readonly message: string }
  /** A bug of this package. */
  | { readonly type: "failed"; readonly key: number; readonly message: string };
