// A seccomp filter that allows a command only the socket families that a network namespace covers. Others lead out of
// it: AF_VSOCK connects to the host of a virtual machine from any network namespace.
//
// io_uring can make sockets without the filtered system call, so it fails as if the kernel lacked it.

const FAMILIES = { unix: 1, inet: 2, inet6: 10, netlink: 16 } as const;

interface Abi {
  /** The value of `seccomp_data.arch`. */
  readonly arch: number;
  readonly socket: number;
  /** On 32-bit ABIs: one system call for all socket functions, selected by its first argument. */
  readonly socketcall?: number;
}

/** The ABIs of programs that each kernel runs, its own first. */
const ABIS: Partial<Record<NodeJS.Architecture, readonly [Abi, ...Abi[]]>> = {
  x64: [
    { arch: 0xc000_003e, socket: 41 },
    { arch: 0x4000_0003, socket: 359, socketcall: 102 },
  ],
  arm64: [
    { arch: 0xc000_00b7, socket: 198 },
    { arch: 0x4000_0028, socket: 281, socketcall: 102 },
  ],
  riscv64: [{ arch: 0xc000_00f3, socket: 198 }],
  loong64: [{ arch: 0xc000_0102, socket: 198 }],
};

const IO_URING_SETUP = 425;
/** The number of `socket` for socketcall(2). */
const SOCKETCALL_SOCKET = 1;
/** Calls of the x32 interface have this bit. Its calls have other numbers, and no distribution uses it. */
const X32_BIT = 0x4000_0000;

const LOAD = 0x20;
const JUMP_EQUAL = 0x15;
const JUMP_AT_LEAST = 0x35;
const RETURN = 0x06;

const NUMBER_AT = 0;
const ARCH_AT = 4;
/** The low half of the first argument on little-endian machines. */
const ARGUMENT_AT = 16;

const ALLOW = 0x7fff_0000;
const errno = (code: number): number => 0x0005_0000 | code;
const EAFNOSUPPORT = 97;
const ENOSYS = 38;

type Step = readonly [code: number, jumpTrue: number, jumpFalse: number, value: number];

const load = (at: number): Step => [LOAD, 0, 0, at];
/** Continues with `then` if it is equal, and behind them if not. */
const when = (value: number, then: readonly Step[], code = JUMP_EQUAL): readonly Step[] => [
  [code, 0, then.length, value],
  ...then,
];
const result = (value: number): Step => [RETURN, 0, 0, value];

/** Undefined: the numbers of this architecture are not known. */
export function socketFilter(arch: NodeJS.Architecture = process.arch): Buffer | undefined {
  const abis = ABIS[arch];
  if (abis === undefined) return undefined;
  const steps = [...abis.flatMap(forAbi), result(errno(ENOSYS))];
  const bytes = Buffer.alloc(steps.length * 8);
  for (const [index, [code, jumpTrue, jumpFalse, value]] of steps.entries()) {
    bytes.writeUInt16LE(code, index * 8);
    bytes.writeUInt8(jumpTrue, index * 8 + 2);
    bytes.writeUInt8(jumpFalse, index * 8 + 3);
    bytes.writeUInt32LE(value, index * 8 + 4);
  }
  return bytes;
}

function forAbi({ arch, socket, socketcall }: Abi): readonly Step[] {
  const families = [
    load(ARGUMENT_AT),
    ...Object.values(FAMILIES).flatMap((family) => when(family, [result(ALLOW)])),
    result(errno(EAFNOSUPPORT)),
  ];
  const combined =
    socketcall === undefined
      ? []
      : when(socketcall, [load(ARGUMENT_AT), ...when(SOCKETCALL_SOCKET, [result(errno(EAFNOSUPPORT))]), result(ALLOW)]);
  return [
    load(ARCH_AT),
    ...when(arch, [
      load(NUMBER_AT),
      ...when(X32_BIT, [result(errno(ENOSYS))], JUMP_AT_LEAST),
      ...when(IO_URING_SETUP, [result(errno(ENOSYS))]),
      ...when(socket, families),
      ...combined,
      result(ALLOW),
    ]),
  ];
}
