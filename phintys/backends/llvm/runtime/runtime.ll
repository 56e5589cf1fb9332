; What every entry routine calls: compiled once, kept in the disk cache.
; Names after a dollar sign are byte offsets and flags from cpython.py.
;
; The block of a function starts with these words:
;   0 slow    1 failed    2 number of arguments    3 tuple of their names, or null
;   then for each argument: its descriptor (null for an object), its rank

declare ptr @PyArray_Empty(i32, ptr, ptr, i32)
declare ptr @PyArray_FromAny(ptr, ptr, i32, i32, i32, ptr)
declare ptr @PyDict_New()
declare i32 @PyDict_SetItem(ptr, ptr, ptr)
declare ptr @PyErr_Format(ptr, ptr, ...)
declare i32 @PyErr_CheckSignals()
declare ptr @PyErr_NoMemory()
declare ptr @PyErr_Occurred()
declare void @PyErr_SetString(ptr, ptr)
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyObject_CallFunctionObjArgs(ptr, ...)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare void @PyMem_RawFree(ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare i64 @PyThread_get_thread_ident()
declare ptr @PyThread_tss_get(ptr)
declare i32 @PyThread_tss_set(ptr, ptr)
declare i64 @PyTuple_Size(ptr)
declare i32 @PyType_IsSubtype(ptr, ptr)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

@PyArray_Type = external global i8
@PyGenericArrType_Type = external global i8
@PyTuple_Type = external global i8
@PyExc_OverflowError = external global ptr
@PyExc_RuntimeError = external global ptr
@PyExc_TypeError = external global ptr
@_Py_NoneStruct = external global i8
@strided_cell = external global ptr
@strided_make = external global i8
@blas_threads = external global i64
@watch = external global [2 x i64]
@watch_key = external global i8

@text.replaced = private constant [70 x i8] c"a shared variable is replaced again and again in calls that update it\00"
@text.large = private constant [33 x i8] c"an operand is too large for BLAS\00"
@text.strict = private constant [47 x i8] c"an argument does not fit the compiled function\00"
@text.failed = private constant [47 x i8] c"step %lld failed, and no reason has been given\00"
@text.array = private constant [48 x i8] c"%U must be an array of %R, rank %lld, not %.99R\00"
@text.tuple = private constant [51 x i8] c"%U must return a tuple of %lld value(s), not %.99R\00"

; ---------------------------------------------------------------- arrays

; A fresh array; null with an exception.
define ptr @phintys_empty(i64 %rank, ptr %dims, ptr %descr) {
  call void @Py_IncRef(ptr %descr)
  %nd = trunc i64 %rank to i32
  %new = call ptr @PyArray_Empty(i32 %nd, ptr %dims, ptr %descr, i32 0)
  ret ptr %new
}

; A fresh array with a copy of memory; null with an exception.
define ptr @phintys_copy(i64 %rank, ptr %dims, ptr %descr, ptr %from, i64 %bytes) {
  %new = call ptr @phintys_empty(i64 %rank, ptr %dims, ptr %descr)
  %bad = icmp eq ptr %new, null
  br i1 %bad, label %done, label %fill
fill:
  %at = getelementptr i8, ptr %new, i64 $data
  %to = load ptr, ptr %at
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  br label %done
done:
  ret ptr %new
}

; Whether an object is an array of exactly this descriptor, rank and layout.
define i1 @phintys_fits(ptr %object, ptr %descr, i64 %rank) {
  %type.at = getelementptr i8, ptr %object, i64 $type
  %type = load ptr, ptr %type.at
  %is = icmp eq ptr %type, @PyArray_Type
  br i1 %is, label %array, label %no
array:
  %descr.at = getelementptr i8, ptr %object, i64 $descr
  %has = load ptr, ptr %descr.at
  %nd.at = getelementptr i8, ptr %object, i64 $nd
  %nd = load i32, ptr %nd.at
  %flags.at = getelementptr i8, ptr %object, i64 $flags
  %flags = load i32, ptr %flags.at
  %wide = sext i32 %nd to i64
  %layout = and i32 %flags, $layout
  %a = icmp eq ptr %has, %descr
  %b = icmp eq i64 %wide, %rank
  %c = icmp eq i32 %layout, $layout
  %ab = and i1 %a, %b
  %abc = and i1 %ab, %c
  ret i1 %abc
no:
  ret i1 false
}

; Whether an object is an array (or NumPy scalar, if %wide) of the right kind of numbers and rank.
define i1 @phintys_similar(ptr %object, ptr %descr, i64 %rank) {
  %type.at = getelementptr i8, ptr %object, i64 $type
  %type = load ptr, ptr %type.at
  %is = call i32 @PyType_IsSubtype(ptr %type, ptr @PyArray_Type)
  %not = icmp eq i32 %is, 0
  br i1 %not, label %no, label %array
array:
  %nd.at = getelementptr i8, ptr %object, i64 $nd
  %nd = load i32, ptr %nd.at
  %wide = sext i32 %nd to i64
  %same.rank = icmp eq i64 %wide, %rank
  %descr.at = getelementptr i8, ptr %object, i64 $descr
  %has = load ptr, ptr %descr.at
  %has.at = getelementptr i8, ptr %has, i64 $type_num
  %has.num = load i32, ptr %has.at
  %want.at = getelementptr i8, ptr %descr, i64 $type_num
  %want.num = load i32, ptr %want.at
  %same.num = icmp eq i32 %has.num, %want.num
  %both = and i1 %same.rank, %same.num
  ret i1 %both
no:
  ret i1 false
}

; Copy an array in another memory layout into a fresh one: 1 if that has been done, 0 if it is better
; left to NumPy: it is empty, or its bytes are not those of the numbers.
define i32 @phintys_spread(ptr %function, ptr %object, ptr %descr, i64 %rank, ptr %new) noinline optnone {
entry:
  %own.at = getelementptr i8, ptr %object, i64 $descr
  %own = load ptr, ptr %own.at
  %same = icmp eq ptr %own, %descr
  %flags.at = getelementptr i8, ptr %object, i64 $flags
  %flags = load i32, ptr %flags.at
  %bit = and i32 %flags, $aligned
  %aligned = icmp ne i32 %bit, 0
  %good = and i1 %same, %aligned
  %some = icmp sgt i64 %rank, 0
  %both = and i1 %good, %some
  br i1 %both, label %count, label %no
count:
  %dims.at = getelementptr i8, ptr %object, i64 $dims
  %dims = load ptr, ptr %dims.at
  %strides.at = getelementptr i8, ptr %object, i64 $strides
  %strides = load ptr, ptr %strides.at
  %new.strides.at = getelementptr i8, ptr %new, i64 $strides
  %new.strides = load ptr, ptr %new.strides.at
  %last = sub i64 %rank, 1
  %item.at = getelementptr i64, ptr %new.strides, i64 %last
  %item = load i64, ptr %item.at
  br label %test
test:
  %i = phi i64 [0, %count], [%next, %turn]
  %size = phi i64 [1, %count], [%product, %turn]
  %uneven = phi i64 [0, %count], [%odd, %turn]
  %more = icmp slt i64 %i, %rank
  br i1 %more, label %turn, label %look
turn:
  %dim.at = getelementptr i64, ptr %dims, i64 %i
  %dim = load i64, ptr %dim.at
  %product = mul i64 %size, %dim
  %stride.at = getelementptr i64, ptr %strides, i64 %i
  %stride = load i64, ptr %stride.at
  %rest = srem i64 %stride, %item
  %odd = or i64 %uneven, %rest
  %next = add i64 %i, 1
  br label %test
look:
  %several = icmp sgt i64 %size, 0
  %even = icmp eq i64 %uneven, 0
  %go = and i1 %several, %even
  br i1 %go, label %copy, label %no
copy:
  %from.at = getelementptr i8, ptr %object, i64 $data
  %from = load ptr, ptr %from.at
  %to.at = getelementptr i8, ptr %new, i64 $data
  %to = load ptr, ptr %to.at
  %done = call i32 %function(ptr %to, ptr %from, i64 %rank, ptr %dims, ptr %strides, i64 %item)
  ret i32 %done
no:
  ret i32 0
}

; The address in a word that Python fills when it is first needed (cells.py); null with an exception.
; The interpreter's lock may have been given up.
define ptr @phintys_made(ptr %cell, ptr %make) noinline optnone {
  %known = load ptr, ptr %cell
  %missing = icmp eq ptr %known, null
  br i1 %missing, label %make.it, label %found
found:
  ret ptr %known
make.it:
  %state = call i32 @PyGILState_Ensure()
  %answer = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %make, ptr null)
  %failed = icmp eq ptr %answer, null
  br i1 %failed, label %error, label %made
made:
  call void @Py_DecRef(ptr %answer)
  call void @PyGILState_Release(i32 %state)
  %new = load ptr, ptr %cell
  ret ptr %new
error:
  call void @PyGILState_Release(i32 %state)
  ret ptr null
}

; The same numbers as an array that fits; null with an exception.
define ptr @phintys_convert(ptr %object, ptr %descr, i64 %rank) noinline optnone {
  %function = call ptr @phintys_made(ptr @strided_cell, ptr @strided_make)
  %unmade = icmp eq ptr %function, null
  br i1 %unmade, label %error, label %begin
begin:
  %dims.at = getelementptr i8, ptr %object, i64 $dims
  %dims = load ptr, ptr %dims.at
  %fresh = call ptr @phintys_empty(i64 %rank, ptr %dims, ptr %descr)
  %failed = icmp eq ptr %fresh, null
  br i1 %failed, label %error, label %fill
fill:
  %done = call i32 @phintys_spread(ptr %function, ptr %object, ptr %descr, i64 %rank, ptr %fresh)
  %good = icmp eq i32 %done, 1
  br i1 %good, label %filled, label %other
filled:
  ret ptr %fresh
other:
  call void @Py_DecRef(ptr %fresh)
  call void @Py_IncRef(ptr %descr)
  %new = call ptr @PyArray_FromAny(ptr %object, ptr %descr, i32 0, i32 0, i32 $copy, ptr null)
  ret ptr %new
error:
  ret ptr null
}

; A new reference to an array that fits: the object itself, a copy with the right layout, or null
; with an exception.  %what is a str that names the object.
define ptr @phintys_array(ptr %object, ptr %descr, i64 %rank, ptr %what) {
  %fits = call i1 @phintys_fits(ptr %object, ptr %descr, i64 %rank)
  br i1 %fits, label %take, label %look
take:
  call void @Py_IncRef(ptr %object)
  ret ptr %object
look:
  %similar = call i1 @phintys_similar(ptr %object, ptr %descr, i64 %rank)
  br i1 %similar, label %convert, label %scalar
scalar:
  %type.at = getelementptr i8, ptr %object, i64 $type
  %type = load ptr, ptr %type.at
  %number = call i32 @PyType_IsSubtype(ptr %type, ptr @PyGenericArrType_Type)
  %other = icmp eq i32 %number, 0
  br i1 %other, label %wrong, label %wrap
wrap:
  %array = call ptr @PyArray_FromAny(ptr %object, ptr null, i32 0, i32 0, i32 $copy, ptr null)
  %none = icmp eq ptr %array, null
  br i1 %none, label %error, label %wrapped
wrapped:
  %good = call i1 @phintys_fits(ptr %array, ptr %descr, i64 %rank)
  br i1 %good, label %new, label %drop
new:
  ret ptr %array
drop:
  call void @Py_DecRef(ptr %array)
  br label %wrong
convert:
  ; NumPy may release the interpreter's lock, and another thread may drop the object then
  call void @Py_IncRef(ptr %object)
  %copy = call ptr @phintys_convert(ptr %object, ptr %descr, i64 %rank)
  call void @Py_DecRef(ptr %object)
  ret ptr %copy
wrong:
  %kind = load ptr, ptr @PyExc_TypeError
  %e = call ptr (ptr, ptr, ...) @PyErr_Format(ptr %kind, ptr @text.array, ptr %what, ptr %descr, i64 %rank, ptr %object)
  ret ptr null
error:
  ret ptr null
}

; ---------------------------------------------------------------- memory and references

; Drop references and forget them; null entries are allowed.
define void @phintys_release(ptr %owned, i64 %count) {
entry:
  br label %test
test:
  %i = phi i64 [0, %entry], [%next, %drop]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %drop, label %done
drop:
  %at = getelementptr ptr, ptr %owned, i64 %i
  %object = load ptr, ptr %at
  store ptr null, ptr %at
  call void @Py_DecRef(ptr %object)
  %next = add i64 %i, 1
  br label %test
done:
  ret void
}

; Free workspaces and forget them; null entries are allowed.
define void @phintys_free(ptr %works, i64 %count) {
entry:
  br label %test
test:
  %i = phi i64 [0, %entry], [%next, %drop]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %drop, label %done
drop:
  %at = getelementptr ptr, ptr %works, i64 %i
  %memory = load ptr, ptr %at
  store ptr null, ptr %at
  call void @PyMem_RawFree(ptr %memory)
  %next = add i64 %i, 1
  br label %test
done:
  ret void
}

; How many threads a large product may take.
define i64 @phintys_blas_threads() {
  %count = load i64, ptr @blas_threads
  ret i64 %count
}

; A product failed: it is too large, or an exception is set already.
define void @phintys_too_large() {
  %set = call ptr @PyErr_Occurred()
  %silent = icmp eq ptr %set, null
  br i1 %silent, label %complain, label %done
complain:
  %kind = load ptr, ptr @PyExc_OverflowError
  call void @PyErr_SetString(ptr %kind, ptr @text.large)
  br label %done
done:
  ret void
}

; A call has been repeated too often, because a shared variable that it updates was replaced.
define void @phintys_replaced() {
  %kind = load ptr, ptr @PyExc_RuntimeError
  call void @PyErr_SetString(ptr %kind, ptr @text.replaced)
  ret void
}

; ---------------------------------------------------------------- signals

; Let Python handle signals, which its main thread does; the interpreter's lock may be held or not.
; Not 0 if a handler has raised.  The lock is taken now and then only: others may want it.  In a
; thread that a kernel has made the result is the word that stops it.  It leaves the registers of
; integers alone, so that loops which call it keep them.
define preserve_mostcc i64 @phintys_poll() {
  %me = call i64 @PyThread_get_thread_ident()
  %main = load i64, ptr @watch
  %handles = icmp eq i64 %me, %main
  br i1 %handles, label %look, label %other
other:
  %stop = call ptr @PyThread_tss_get(ptr @watch_key)
  %free = icmp eq ptr %stop, null
  br i1 %free, label %no, label %part
part:
  %stopped = load atomic i64, ptr %stop monotonic, align 8
  ret i64 %stopped
look:
  %now = call i64 @milliseconds()
  %asked.at = getelementptr i64, ptr @watch, i64 1
  %asked = load i64, ptr %asked.at
  %since = sub i64 %now, %asked
  %due = icmp uge i64 %since, $period
  br i1 %due, label %ask, label %no
ask:
  store i64 %now, ptr %asked.at
  %state = call i32 @PyGILState_Ensure()
  %raised = call i32 @PyErr_CheckSignals()
  call void @PyGILState_Release(i32 %state)
  %status = sext i32 %raised to i64
  ret i64 %status
no:
  ret i64 0
}

; Say which word stops the calling thread, made for a part of a kernel.
define void @phintys_stoppable(ptr %stop) {
  %failed = call i32 @PyThread_tss_set(ptr @watch_key, ptr %stop)
  ret void
}

; ---------------------------------------------------------------- calls into Python

; Call a Python function that returns a tuple of %outputs values; null with an exception.
define ptr @phintys_call(ptr %function, ptr %args, i64 %inputs, i64 %outputs, ptr %what) {
  %result = call ptr @PyObject_Vectorcall(ptr %function, ptr %args, i64 %inputs, ptr null)
  %none = icmp eq ptr %result, null
  br i1 %none, label %error, label %look
look:
  %type.at = getelementptr i8, ptr %result, i64 $type
  %type = load ptr, ptr %type.at
  %tuple = icmp eq ptr %type, @PyTuple_Type
  br i1 %tuple, label %count, label %wrong
count:
  %size = call i64 @PyTuple_Size(ptr %result)
  %right = icmp eq i64 %size, %outputs
  br i1 %right, label %good, label %wrong
good:
  ret ptr %result
wrong:
  %kind = load ptr, ptr @PyExc_TypeError
  %e = call ptr (ptr, ptr, ...) @PyErr_Format(ptr %kind, ptr @text.tuple, ptr %what, i64 %outputs, ptr %result)
  call void @Py_DecRef(ptr %result)
  ret ptr null
error:
  ret ptr null
}

; A tuple of new references to objects; null with an exception.
define ptr @phintys_tuple(ptr %objects, i64 %count) {
entry:
  %tuple = call ptr @PyTuple_New(i64 %count)
  %none = icmp eq ptr %tuple, null
  br i1 %none, label %done, label %test
test:
  %i = phi i64 [0, %entry], [%next, %put]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %put, label %done
put:
  %at = getelementptr ptr, ptr %objects, i64 %i
  %object = load ptr, ptr %at
  call void @Py_IncRef(ptr %object)
  %ok = call i32 @PyTuple_SetItem(ptr %tuple, i64 %i, ptr %object)
  %next = add i64 %i, 1
  br label %test
done:
  ret ptr %tuple
}

; A dict of keyword arguments, or a new reference to None; null with an exception.
define ptr @phintys_keywords(ptr %names, ptr %values) {
entry:
  %none = icmp eq ptr %names, null
  br i1 %none, label %nothing, label %some
nothing:
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
some:
  %dict = call ptr @PyDict_New()
  %bad = icmp eq ptr %dict, null
  br i1 %bad, label %error, label %begin
begin:
  %count = call i64 @PyTuple_Size(ptr %names)
  br label %test
test:
  %i = phi i64 [0, %begin], [%next, %put]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %put, label %done
put:
  %name = call ptr @PyTuple_GetItem(ptr %names, i64 %i)
  %at = getelementptr ptr, ptr %values, i64 %i
  %value = load ptr, ptr %at
  %status = call i32 @PyDict_SetItem(ptr %dict, ptr %name, ptr %value)
  %next = add i64 %i, 1
  %ok = icmp eq i32 %status, 0
  br i1 %ok, label %test, label %drop
done:
  ret ptr %dict
drop:
  call void @Py_DecRef(ptr %dict)
  br label %error
error:
  ret ptr null
}

; Call back with two objects, whose references it takes; either may be null with an exception.
define ptr @phintys_callback(ptr %function, ptr %first, ptr %second) {
  %a = icmp eq ptr %first, null
  %b = icmp eq ptr %second, null
  %bad = or i1 %a, %b
  br i1 %bad, label %error, label %good
good:
  %result = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %function, ptr %first, ptr %second, ptr null)
  br label %done
error:
  br label %done
done:
  %answer = phi ptr [%result, %good], [null, %error]
  call void @Py_DecRef(ptr %first)
  call void @Py_DecRef(ptr %second)
  ret ptr %answer
}

; A step failed: let the callback raise the error, unless an exception is set already.
define ptr @phintys_failed(ptr %block, ptr %args, i64 %step) {
  %before = call ptr @PyErr_Occurred()
  %unset = icmp eq ptr %before, null
  br i1 %unset, label %ask, label %done
ask:
  %function.at = getelementptr ptr, ptr %block, i64 1
  %function = load ptr, ptr %function.at
  %count.at = getelementptr ptr, ptr %block, i64 2
  %count = load i64, ptr %count.at
  %tuple = call ptr @phintys_tuple(ptr %args, i64 %count)
  %number = call ptr @PyLong_FromLongLong(i64 %step)
  %result = call ptr @phintys_callback(ptr %function, ptr %tuple, ptr %number)
  call void @Py_DecRef(ptr %result)
  %set = call ptr @PyErr_Occurred()
  %silent = icmp eq ptr %set, null
  br i1 %silent, label %complain, label %done
complain:
  %kind = load ptr, ptr @PyExc_RuntimeError
  %e = call ptr (ptr, ptr, ...) @PyErr_Format(ptr %kind, ptr @text.failed, i64 %step)
  br label %done
done:
  ret ptr null
}

; A step of a bare routine failed: let the callback note the arguments, unless an exception is set
; already, by a handler of signals.  The status of the routine.  The thread may have no GIL.
define i64 @phintys_noted(ptr %block, ptr %args, i64 %step) noinline optnone {
  %state = call i32 @PyGILState_Ensure()
  %before = call ptr @PyErr_Occurred()
  %unset = icmp eq ptr %before, null
  br i1 %unset, label %ask, label %end
ask:
  %function.at = getelementptr ptr, ptr %block, i64 1
  %function = load ptr, ptr %function.at
  %word = ptrtoint ptr %args to i64
  %address = call ptr @PyLong_FromLongLong(i64 %word)
  %number = call ptr @PyLong_FromLongLong(i64 %step)
  %result = call ptr @phintys_callback(ptr %function, ptr %address, ptr %number)
  call void @Py_DecRef(ptr %result)
  br label %end
end:
  %after = call ptr @PyErr_Occurred()
  %failed = icmp eq ptr %after, null
  %status = select i1 %failed, i64 $failed_status, i64 $raised_status
  call void @PyGILState_Release(i32 %state)
  ret i64 %status
}

; ---------------------------------------------------------------- arguments that do not fit

; Whether an argument only misses the memory layout.  Arrays of subclasses are not copied here: some
; of them, like masked arrays, are refused.
define i1 @phintys_misplaced(ptr %object, ptr %descr, i64 %rank) {
  %type.at = getelementptr i8, ptr %object, i64 $type
  %type = load ptr, ptr %type.at
  %plain = icmp eq ptr %type, @PyArray_Type
  %some = icmp ne ptr %descr, null
  %possible = and i1 %plain, %some
  br i1 %possible, label %test, label %no
test:
  %fits = call i1 @phintys_fits(ptr %object, ptr %descr, i64 %rank)
  %misfit = xor i1 %fits, true
  %similar = call i1 @phintys_similar(ptr %object, ptr %descr, i64 %rank)
  %both = and i1 %misfit, %similar
  ret i1 %both
no:
  ret i1 false
}

; Copy misplaced arguments into %new, the others by reference.  The number of copies, -1 with an
; exception.
define i64 @phintys_place(ptr %block, ptr %args, ptr %new, i64 %count) {
entry:
  %rows = getelementptr ptr, ptr %block, i64 4
  br label %test
test:
  %i = phi i64 [0, %entry], [%next, %put]
  %copies = phi i64 [0, %entry], [%sum, %put]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %look, label %done
look:
  %at = getelementptr ptr, ptr %args, i64 %i
  %object = load ptr, ptr %at
  %row = shl i64 %i, 1
  %descr.at = getelementptr ptr, ptr %rows, i64 %row
  %descr = load ptr, ptr %descr.at
  %rank.at = getelementptr i64, ptr %descr.at, i64 1
  %rank = load i64, ptr %rank.at
  %misplaced = call i1 @phintys_misplaced(ptr %object, ptr %descr, i64 %rank)
  br i1 %misplaced, label %convert, label %same
same:
  call void @Py_IncRef(ptr %object)
  br label %put
convert:
  %copy = call ptr @phintys_convert(ptr %object, ptr %descr, i64 %rank)
  %failed = icmp eq ptr %copy, null
  br i1 %failed, label %error, label %put
put:
  %value = phi ptr [%object, %same], [%copy, %convert]
  %one = phi i64 [0, %same], [1, %convert]
  %to = getelementptr ptr, ptr %new, i64 %i
  store ptr %value, ptr %to
  %sum = add i64 %copies, %one
  %next = add i64 %i, 1
  br label %test
done:
  ret i64 %copies
error:
  call void @phintys_release(ptr %new, i64 %i)
  ret i64 -1
}

; Put the arguments by position into %new: the first %given stand in their places already, the others
; have names.  Whether that gives each once.  Names are compared by address: Python keeps one copy of
; each name that stands in a call.
define i1 @phintys_order(ptr %block, ptr %args, i64 %given, ptr %names, ptr %new, i64 %count) {
entry:
  %known.at = getelementptr ptr, ptr %block, i64 3
  %known = load ptr, ptr %known.at
  %anonymous = icmp eq ptr %known, null
  br i1 %anonymous, label %no, label %copy
copy:
  %bytes = shl i64 %given, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %args, i64 %bytes, i1 false)
  br label %test
test:
  %i = phi i64 [%given, %copy], [%next, %put]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %look, label %yes
look:
  %number = sub i64 %i, %given
  %name = call ptr @PyTuple_GetItem(ptr %names, i64 %number)
  br label %search
search:
  %place = phi i64 [%given, %look], [%place.next, %other]
  %left = icmp slt i64 %place, %count
  br i1 %left, label %compare, label %no
compare:
  %candidate = call ptr @PyTuple_GetItem(ptr %known, i64 %place)
  %found = icmp eq ptr %candidate, %name
  br i1 %found, label %put, label %other
other:
  %place.next = add i64 %place, 1
  br label %search
put:
  %at = getelementptr ptr, ptr %args, i64 %i
  %value = load ptr, ptr %at
  %to = getelementptr ptr, ptr %new, i64 %place
  store ptr %value, ptr %to
  %next = add i64 %i, 1
  br label %test
yes:
  ret i1 true
no:
  ret i1 false
}

; The arguments of a call missed the test.  Arguments by name are put in order, or arrays in another
; memory layout are copied, and the call is repeated; everything else goes to the callback.
define ptr @phintys_miss(ptr %self, ptr %args, i64 %flagged, ptr %names) {
  %block.at = getelementptr i8, ptr %self, i64 $block
  %block = load ptr, ptr %block.at
  %given = and i64 %flagged, 9223372036854775807
  %count.at = getelementptr ptr, ptr %block, i64 2
  %count = load i64, ptr %count.at
  %plain = icmp eq ptr %names, null
  br i1 %plain, label %positional, label %named
positional:
  %same = icmp eq i64 %given, %count
  br i1 %same, label %place, label %slow
named:
  %by.name = call i64 @PyTuple_Size(ptr %names)
  %all = add i64 %given, %by.name
  %complete = icmp eq i64 %all, %count
  br i1 %complete, label %sort, label %slow
sort:
  %sorted = alloca ptr, i64 %count
  %ordered = call i1 @phintys_order(ptr %block, ptr %args, i64 %given, ptr %names, ptr %sorted, i64 %count)
  br i1 %ordered, label %repeat, label %slow
repeat:
  %entry.at = getelementptr i8, ptr %self, i64 $vectorcall
  %entry = load ptr, ptr %entry.at
  %answer.named = call ptr %entry(ptr %self, ptr %sorted, i64 %count, ptr null)
  ret ptr %answer.named
place:
  %new = alloca ptr, i64 %count
  %copies = call i64 @phintys_place(ptr %block, ptr %args, ptr %new, i64 %count)
  %failed = icmp slt i64 %copies, 0
  br i1 %failed, label %error, label %placed
placed:
  %some = icmp sgt i64 %copies, 0
  br i1 %some, label %again, label %unchanged
again:
  %again.at = getelementptr i8, ptr %self, i64 $vectorcall
  %again.entry = load ptr, ptr %again.at
  %result = call ptr %again.entry(ptr %self, ptr %new, i64 %count, ptr null)
  call void @phintys_release(ptr %new, i64 %count)
  ret ptr %result
unchanged:
  call void @phintys_release(ptr %new, i64 %count)
  br label %slow
slow:
  %mode.at = getelementptr i8, ptr %self, i64 $mode
  %mode = load i64, ptr %mode.at
  %strict = icmp eq i64 %mode, $strict
  br i1 %strict, label %refuse, label %ask
refuse:
  %kind = load ptr, ptr @PyExc_RuntimeError
  call void @PyErr_SetString(ptr %kind, ptr @text.strict)
  br label %error
ask:
  %function = load ptr, ptr %block
  %tuple = call ptr @phintys_tuple(ptr %args, i64 %given)
  %values = getelementptr ptr, ptr %args, i64 %given
  %keywords = call ptr @phintys_keywords(ptr %names, ptr %values)
  %answer = call ptr @phintys_callback(ptr %function, ptr %tuple, ptr %keywords)
  ret ptr %answer
error:
  ret ptr null
}
