"""Functions of the C library that LLVM may call on its own, in LLVM's language: an object then needs no other library.

Loops that set or copy memory become `memset`, `memcpy` or `memmove`. A processor without an instruction for it rounds by
`floor` and `rint` (x86-64 before SSE 4.1): adding and taking off 2^52 rounds a smaller number to a whole one, half to even.
"""

SUPPORTED = ("memset", "memcpy", "memmove", "rint", "floor")
SUPPORT = """
define i8* @memset(i8* %to, i32 %value, i64 %size) #0 {
  %byte = trunc i32 %value to i8
  %one = insertelement <64 x i8> undef, i8 %byte, i32 0
  %all = shufflevector <64 x i8> %one, <64 x i8> undef, <64 x i32> zeroinitializer
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %next, %step ]
  %next = add i64 %i, 64
  %fits = icmp ule i64 %next, %size
  br i1 %fits, label %step, label %rest
step:
  %place = getelementptr i8, i8* %to, i64 %i
  %wide = bitcast i8* %place to <64 x i8>*
  store <64 x i8> %all, <64 x i8>* %wide, align 1
  br label %test
rest:
  %j = phi i64 [ %i, %test ], [ %after, %single ]
  %more = icmp ult i64 %j, %size
  br i1 %more, label %single, label %done
single:
  %spot = getelementptr i8, i8* %to, i64 %j
  store i8 %byte, i8* %spot
  %after = add i64 %j, 1
  br label %rest
done:
  ret i8* %to
}

define i8* @memcpy(i8* %to, i8* %from, i64 %size) #0 {
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %next, %step ]
  %next = add i64 %i, 64
  %fits = icmp ule i64 %next, %size
  br i1 %fits, label %step, label %rest
step:
  %source = getelementptr i8, i8* %from, i64 %i
  %wide_source = bitcast i8* %source to <64 x i8>*
  %block = load <64 x i8>, <64 x i8>* %wide_source, align 1
  %place = getelementptr i8, i8* %to, i64 %i
  %wide = bitcast i8* %place to <64 x i8>*
  store <64 x i8> %block, <64 x i8>* %wide, align 1
  br label %test
rest:
  %j = phi i64 [ %i, %test ], [ %after, %single ]
  %more = icmp ult i64 %j, %size
  br i1 %more, label %single, label %done
single:
  %spot_source = getelementptr i8, i8* %from, i64 %j
  %byte = load i8, i8* %spot_source
  %spot = getelementptr i8, i8* %to, i64 %j
  store i8 %byte, i8* %spot
  %after = add i64 %j, 1
  br label %rest
done:
  ret i8* %to
}

define i8* @memmove(i8* %to, i8* %from, i64 %size) #0 {
  %a = ptrtoint i8* %to to i64
  %b = ptrtoint i8* %from to i64
  %down = icmp ugt i64 %a, %b
  br i1 %down, label %test, label %up
up:
  %same = call i8* @memcpy(i8* %to, i8* %from, i64 %size)
  ret i8* %to
test:
  %rest = phi i64 [ %size, %0 ], [ %last, %step ]
  %more = icmp ne i64 %rest, 0
  br i1 %more, label %step, label %done
step:
  %last = sub i64 %rest, 1
  %source = getelementptr i8, i8* %from, i64 %last
  %byte = load i8, i8* %source
  %place = getelementptr i8, i8* %to, i64 %last
  store i8 %byte, i8* %place
  br label %test
done:
  ret i8* %to
}

define double @rint(double %x) #0 {
  %size = call double @llvm.fabs.f64(double %x)
  %small = fcmp olt double %size, 0x4330000000000000
  %up = fadd double %size, 0x4330000000000000
  %whole = fsub double %up, 0x4330000000000000
  %signed = call double @llvm.copysign.f64(double %whole, double %x)
  %result = select i1 %small, double %signed, double %x
  ret double %result
}

define double @floor(double %x) #0 {
  %near = call double @rint(double %x)
  %above = fcmp ogt double %near, %x
  %less = fsub double %near, 1.0
  %result = select i1 %above, double %less, double %near
  ret double %result
}

declare double @llvm.fabs.f64(double)
declare double @llvm.copysign.f64(double, double)

attributes #0 = { nounwind noinline "no-builtins" }
"""
