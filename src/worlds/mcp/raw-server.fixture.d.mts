export declare const schema: string;
export declare const structured: string;
export declare function answer(line: string): string;
export declare function bytesOf(text: string): Buffer;
