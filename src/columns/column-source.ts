/** Finds the bytes of columns. */
export interface ColumnSource {
  /**
   * Reads the bytes of a part, or a range of them.
   *
   * @throws UsageError if no file has the part.
   */
  read(
    part: { readonly hash: string; readonly size: number },
    range?: { readonly start: number; readonly end: number },
  ): Promise<Uint8Array>;
}
