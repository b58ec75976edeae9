// What NVIDIA's own cuda_occupancy.h says, for many inputs at once.
//
// The header is not ours and is not here: it comes with the nvidia-cuda-runtime wheel.
//     g++ -O2 -I <folder of cuda_occupancy.h> occupancy_oracle.cpp -o oracle
//
// Standard input: records of 9 int32: compute capability (90 for 9.0), threads, registers,
// static bytes, dynamic bytes, carveout (-1 or percent), opted in (0 or 1), dynamic bytes opted
// in to, barriers.
//     oracle         writes records of 10 int32: status, blocks, limit bits, blocks by warps,
//                    registers, shared memory, slots and barriers, allocated registers and
//                    allocated bytes of shared memory of one block
//     oracle ROUNDS  evaluates everything ROUNDS times and prints the processor seconds of
//                    the fastest round and the sum of all blocks
#include <cuda_occupancy.h>

#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <vector>

namespace {

constexpr int KIB = 1024;

struct Input {
    int32_t cc, threads, registers, static_bytes, dynamic_bytes, carveout, optin, max_dynamic,
        barriers;
};

struct Output {
    int32_t status, blocks, bits, warps, registers, shared, slots, barriers, taken_registers,
        taken_shared;
};

// The header asks the caller for these; they are in the CUDA Programming Guide's table.
struct Sizes {
    int cc, threads, core_kib, block_kib, reserved;
};

constexpr Sizes SIZES[] = {
    {70, 2048, 96, 96, 0},      {72, 2048, 96, 96, 0},      {75, 1024, 64, 64, 0},
    {80, 2048, 164, 163, 1024}, {86, 1536, 100, 99, 1024},  {87, 1536, 164, 163, 1024},
    {88, 1536, 100, 99, 1024},  {89, 1536, 100, 99, 1024},  {90, 2048, 228, 227, 1024},
    {100, 2048, 228, 227, 1024}, {103, 2048, 228, 227, 1024}, {110, 1536, 228, 227, 1024},
    {120, 1536, 100, 99, 1024}, {121, 1536, 100, 99, 1024},
};

std::map<int, cudaOccDeviceProp> devices() {
    std::map<int, cudaOccDeviceProp> found;
    for (const Sizes& size : SIZES) {
        cudaOccDeviceProp device;
        device.computeMajor = size.cc / 10;
        device.computeMinor = size.cc % 10;
        device.maxThreadsPerBlock = 1024;
        device.maxThreadsPerMultiprocessor = size.threads;
        device.regsPerBlock = 65536;
        device.regsPerMultiprocessor = 65536;
        device.warpSize = 32;
        device.sharedMemPerBlock = 48 * KIB;
        device.sharedMemPerMultiprocessor = size.core_kib * KIB;
        device.numSms = 1;
        device.sharedMemPerBlockOptin = size.block_kib * KIB;
        device.reservedSharedMemPerBlock = size.reserved;
        found[size.cc] = device;
    }
    return found;
}

cudaOccError evaluate(const cudaOccDeviceProp& device, const Input& input, cudaOccResult& result) {
    cudaOccFuncAttributes kernel;
    kernel.maxThreadsPerBlock = INT_MAX;
    kernel.numRegs = input.registers;
    kernel.sharedSizeBytes = input.static_bytes;
    kernel.shmemLimitConfig = input.optin ? FUNC_SHMEM_LIMIT_OPTIN : FUNC_SHMEM_LIMIT_DEFAULT;
    kernel.maxDynamicSharedSizeBytes = input.max_dynamic;
    kernel.numBlockBarriers = input.barriers;
    cudaOccDeviceState state;
    state.carveoutConfig = input.carveout;
    return cudaOccMaxActiveBlocksPerMultiprocessor(
        &result, &device, &kernel, &state, input.threads, input.dynamic_bytes);
}

void write_results(const std::vector<Input>& inputs) {
    const auto known = devices();
    for (const Input& input : inputs) {
        cudaOccResult r = {};
        const cudaOccError status = evaluate(known.at(input.cc), input, r);
        const Output output = {
            status, r.activeBlocksPerMultiprocessor, static_cast<int32_t>(r.limitingFactors),
            r.blockLimitWarps, r.blockLimitRegs, r.blockLimitSharedMem, r.blockLimitBlocks,
            r.blockLimitBarriers, r.allocatedRegistersPerBlock,
            static_cast<int32_t>(r.allocatedSharedMemPerBlock)};
        std::fwrite(&output, sizeof output, 1, stdout);
    }
}

void print_time(const std::vector<Input>& inputs, int rounds) {
    const auto known = devices();
    std::vector<const cudaOccDeviceProp*> device;  // looked up before the clock starts
    for (const Input& input : inputs) device.push_back(&known.at(input.cc));
    double best = 1e9;
    long long sum = 0;
    for (int round = 0; round < rounds; ++round) {
        const std::clock_t start = std::clock();
        sum = 0;
        for (size_t i = 0; i < inputs.size(); ++i) {
            cudaOccResult result;
            if (evaluate(*device[i], inputs[i], result) == CUDA_OCC_SUCCESS)
                sum += result.activeBlocksPerMultiprocessor;
        }
        const double took = double(std::clock() - start) / CLOCKS_PER_SEC;
        if (took < best) best = took;
    }
    std::printf("%.9f %lld\n", best, sum);
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<Input> inputs;
    Input input;
    while (std::fread(&input, sizeof input, 1, stdin) == 1) inputs.push_back(input);
    if (argc > 1)
        print_time(inputs, std::atoi(argv[1]));
    else
        write_results(inputs);
    return 0;
}
