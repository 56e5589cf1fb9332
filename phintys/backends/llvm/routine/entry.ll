declare double @PyFloat_AsDouble(ptr)
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyErr_NoMemory()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyList_GetItem(ptr, i64)
declare ptr @PyList_New(i64)
declare i32 @PyList_SetItem(ptr, i64, ptr)
declare ptr @PyMem_RawMalloc(i64)
declare ptr @PyTuple_GetItem(ptr, i64)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.sadd.sat.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare {i64, i1} @llvm.sadd.with.overflow.i64(i64, i64)
declare {i64, i1} @llvm.ssub.with.overflow.i64(i64, i64)
declare {i64, i1} @llvm.smul.with.overflow.i64(i64, i64)
declare ptr @phintys_array(ptr, ptr, i64, ptr)
declare i64 @phintys_blas_threads()
declare ptr @phintys_call(ptr, ptr, i64, i64, ptr)
declare ptr @phintys_copy(i64, ptr, ptr, ptr, i64)
declare ptr @phintys_empty(i64, ptr, ptr)
declare ptr @phintys_failed(ptr, ptr, i64)
declare void @phintys_free(ptr, i64)
declare ptr @phintys_miss(ptr, ptr, i64, ptr)
declare preserve_mostcc i64 @phintys_poll() cold
declare void @phintys_release(ptr, i64)
declare void @phintys_replaced()
declare void @phintys_too_large()
@PyArray_Type = external global i8
@PyDoubleArrType_Type = external global i8
@PyFloat_Type = external global i8
@PyLong_Type = external global i8
@_Py_FalseStruct = external global i8
@_Py_TrueStruct = external global i8
